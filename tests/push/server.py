# SPDX-License-Identifier: Apache-2.0
"""Runs servers of Debian's ClickHouse on the loopback interface, each in its own folder."""
import atexit
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

SQL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sql", "clickhouse")
PROGRAM = shutil.which("clickhouse-server") or shutil.which("clickhouse")

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
<listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>
<format_schema_path>{folder}/schemas/</format_schema_path>
<mark_cache_size>100000000</mark_cache_size><max_concurrent_queries>50</max_concurrent_queries>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><timezone>UTC</timezone>
<remote_servers incl="none"><shards>{shards}</shards></remote_servers>
<macros><cluster>shards</cluster><shard>{number}</shard></macros>
{keeper}
</yandex>
"""

KEEPER = """<zookeeper><node><host>127.0.0.1</host><port>{}</port></node></zookeeper>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>"""
ZOOKEEPER = "/usr/share/java/zookeeper.jar"
JAVA = shutil.which("java") if os.path.exists(ZOOKEEPER) else None

SHARD = ("<shard><internal_replication>true</internal_replication><replica><host>127.0.0.1</host>"
         "<port>{}</port></replica></shard>")

USERS = """<yandex>
<profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
<users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<shipper><password>a secret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></shipper>
</users>
<quotas><default></default></quotas>
</yandex>
"""


def text(name, *edits):
    """Returns a file of sql/clickhouse, edited with these sed scripts."""
    with open(os.path.join(SQL, name)) as file:
        made = file.read()
    for edit in edits:
        made = subprocess.run(["sed", "-f", os.path.join(SQL, edit)], input=made, capture_output=True, text=True,
                              check=True).stdout
    return made


def text_of_one(name, *edits):
    """The same for a server that creates its own tables, without Keeper."""
    return text(name, *edits).replace(" ON CLUSTER '{cluster}'", "").replace("{cluster}", "shards")


def own_ports(count):
    """Returns ports that this process reserves until it ends. Bound sockets keep other processes from getting them as free
    ports. The sockets do not listen and set SO_REUSEADDR, so a server that sets it can listen there."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        atexit.register(one.close)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    return [one.getsockname()[1] for one in sockets]


class Server:
    def __init__(self, folder, number, ports, all_ports, keeper=None):
        self.folder = os.path.join(folder, f"node{number}")
        self.http, self.tcp, inter = ports
        self.process = None
        for part in ("data", "tmp", "files", "schemas"):
            os.makedirs(os.path.join(self.folder, part))
        shards = "".join(SHARD.format(tcp) for _, tcp, _ in all_ports)
        with open(os.path.join(self.folder, "config.xml"), "w") as file:
            file.write(CONFIG.format(folder=self.folder, http=self.http, tcp=self.tcp, inter=inter,
                                     shards=shards, number=number,
                                     keeper=KEEPER.format(keeper) if keeper else ""))
        with open(os.path.join(self.folder, "users.xml"), "w") as file:
            file.write(USERS)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http}/"

    def start(self):
        command = [PROGRAM, f"--config-file={self.folder}/config.xml"]
        if os.path.basename(PROGRAM) == "clickhouse":
            command.insert(1, "server")
        with open(os.path.join(self.folder, "output"), "a") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        while True:
            try:
                self.ask("SELECT 1")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(open(os.path.join(self.folder, "output")).read())
                time.sleep(0.05)

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def ask(self, sql, **settings):
        """Returns the rows as lists of texts."""
        query = "&".join(f"{name}={value}" for name, value in settings.items())
        request = urllib.request.Request(f"{self.url}?{query}", data=sql.encode())
        try:
            with urllib.request.urlopen(request) as answer:
                return [line.split("\t") for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{sql}: {error.read().decode()}") from None

    def run(self, script):
        """Runs all statements of a script."""
        lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
        for statement in "\n".join(lines).split(";"):
            if statement.strip():
                self.ask(statement)

    def number(self, sql):
        return int(self.ask(sql)[0][0])


class Keeper:
    """ZooKeeper, which passes statements with ON CLUSTER to all servers."""

    def __init__(self, folder):
        self.port, = own_ports(1)
        os.makedirs(os.path.join(folder, "keeper"))
        with open(os.path.join(folder, "keeper", "output"), "w") as output:
            self.process = subprocess.Popen(
                [JAVA, "-Xmx64m", "-Dzookeeper.admin.enableServer=false", "-cp", ZOOKEEPER,
                 "org.apache.zookeeper.server.ZooKeeperServerMain", str(self.port), os.path.join(folder, "keeper")],
                stdout=output, stderr=output)
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port)) as asked:
                    asked.sendall(b"srvr")
                    if b"Mode: standalone" in asked.recv(10000):
                        return
            except OSError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError("ZooKeeper has ended")
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()


def start(folder, count, keeper=None):
    flat = own_ports(3 * count)
    ports = [flat[3 * i:3 * i + 3] for i in range(count)]
    servers = [Server(folder, i + 1, ports[i], ports, keeper) for i in range(count)]
    for server in servers:
        server.start()
    return servers
