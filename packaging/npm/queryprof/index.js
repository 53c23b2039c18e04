// SPDX-License-Identifier: Apache-2.0
'use strict';
const path = require('path');

const platform = `queryprof-${process.platform}-${process.arch}-glibc`;

/** Returns the folder of this platform's package. */
function folder() {
  try {
    return path.dirname(require.resolve(`${platform}/package.json`));
  } catch {
    throw new Error(`queryprof has no package for this system: ${platform} is not installed. There are packages for ` +
      'Linux on x64 and arm64 with glibc 2.28 or later; npm leaves them out with --omit=optional.');
  }
}

const SETTING = /^[a-z][a-z0-9_]*$/;

function text(value) {
  return `'${String(value).replace(/'/g, "''")}'`;
}

/** All kinds of connections have exec(). */
function set(connection, settings) {
  for (const [name, value] of Object.entries(settings)) {
    if (!SETTING.test(name))
      throw new TypeError(`${JSON.stringify(name)} is not the name of a setting; expected small letters, digits and _`);
    if (value === undefined || value === null)
      throw new TypeError(`The setting ${name} is ${value}: give a number or a text, or 'DEFAULT'`);
    // Not a PRAGMA, because SQLite ignores unknown ones.
    connection.exec(`SELECT set_setting('${name}', ${text(value)})`);
  }
}

function load(connection, settings = {}) {
  connection.loadExtension(module.exports.library);
  set(connection, settings);
  return connection;
}

function setLabels(connection, labels) {
  connection.exec(`PRAGMA query_profiler_labels = ${text(JSON.stringify(labels))}`);
}

module.exports = {
  load, set, setLabels,
  get command() { return path.join(folder(), 'bin', 'queryprof'); },
  get library() { return path.join(folder(), 'lib', 'libqueryprof.so'); },
};
Object.assign(module.exports, require('./limits.js'));
