#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Replaces this process by the command if node can do that. Otherwise runs it as a child, and passes on signals and its end.
'use strict';
const { spawn } = require('child_process');
const os = require('os');

let command;
try {
  ({ command } = require('./index.js'));
} catch (error) {
  console.error(`queryprof: ${error.message}`);
  process.exit(1);
}
const args = process.argv.slice(2);
if (typeof process.execve === 'function' && !process.versions.bun && !process.versions.deno) {
  process.removeAllListeners('warning');
  process.on('warning', () => {}); // hides the warning that execve is experimental
  process.execve(command, [command, ...args], process.env);
}
const child = spawn(command, args, { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'])
  process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`queryprof: ${command}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(128 + os.constants.signals[signal]), 1000);
  } else {
    process.exit(code);
  }
});
