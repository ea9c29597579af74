"""A Slurm cluster of one machine: munge, a database, accounting, a controller and a node daemon, all in one folder.

    python tests/slurm/cluster.py up FOLDER      # then: export SLURM_CONF=FOLDER/slurm.conf
    python tests/slurm/cluster.py down FOLDER

Needs root and the Debian packages slurm-wlm, munge, slurmdbd and mariadb-server. Accounting is there because submitit
asks `sacct` what became of a job: on a cluster without it, a killed job counts as running for ever.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "srun": "slurm-wlm",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
}
DAEMONS = ("slurmd", "slurmctld", "slurmdbd", "mariadbd", "munged")  # in the order in which they are ended
PATIENCE = 60.0  # seconds for a daemon to answer
# No cgroups, which containers rarely may use. A job that was requeued may begin when its credential has expired
# (cred_expire). More processors than there are (config_overrides): what is tested waits more than it computes.
SLURM = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5
ReturnToService=2
KillWait=5
SlurmdTimeout=300
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounting}
AccountingStoragePass={folder}/munge.socket
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} State=UNKNOWN
PartitionName=tests Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
ACCOUNTING = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={accounting}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""


def reason_to_skip() -> str | None:
    """Why there can be no cluster here; None where there can."""
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=_path())})
    if missing:
        return f"needs the Debian packages {' '.join(missing)}"
    return None if os.geteuid() == 0 else "needs root, to start Slurm's daemons"


@dataclass(frozen=True)
class Cluster:
    """folder: absolute, with everything that the daemons read and write.   slots: processors that the node offers."""

    folder: Path
    slots: int = 4

    @property
    def environment(self) -> dict[str, str]:
        """For commands that use the cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _path()}

    def up(self) -> None:
        """Start all daemons, each when the one that it needs answers. Raises TimeoutError with the end of its log."""
        for part in (".", "state", "spool", "database"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        self._write_configs()
        folder = self.folder
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._start("munged", "--foreground", "--force", "--num-threads=2", f"--socket={folder}/munge.socket", *munge)
        self._wait_for("munged", lambda: (folder / "munge.socket").exists())
        self._start_database()
        self._start("slurmdbd", "-D")
        self._wait_for("slurmdbd", lambda: "tests" in self.ask("sacctmgr", "-n", "-i", "add", "cluster", "tests"))
        self._start("slurmctld", "-D", "-c", "-i")
        self._wait_for("slurmctld", lambda: "UP" in self.ask("scontrol", "ping"))
        self.start_node_daemon()

    def start_node_daemon(self) -> None:
        self._start("slurmd", "-D", "-N", socket.gethostname())
        self._wait_for("slurmd", lambda: self.ask("sinfo", "-h", "-o", "%t").strip() in ("idle", "mix", "alloc"))

    def kill_node_daemon(self) -> None:
        """SIGKILL; what its jobs run goes on without it."""
        self._end("slurmd", signal.SIGKILL)

    def down(self) -> None:
        """End all jobs, then the daemons."""
        with contextlib.suppress(subprocess.SubprocessError):
            self.ask("scancel", "--user=root")
            _until(lambda: not self.ask("squeue", "-h").strip(), 30.0)
        for name in DAEMONS:
            self._end(name, signal.SIGTERM)

    def ask(self, *command: str) -> str:
        """Standard output and errors of one of Slurm's commands, whatever its exit status."""
        environment = os.environ | self.environment
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.stdout + done.stderr

    def _write_configs(self) -> None:
        ports = dict(zip(("controller", "node", "accounting", "database"), _free_ports(4), strict=True))
        values = {"folder": self.folder, "host": socket.gethostname(), "slots": self.slots, **ports}
        (self.folder / "slurm.conf").write_text(SLURM.format(**values))
        accounting = self.folder / "slurmdbd.conf"
        accounting.write_text(ACCOUNTING.format(**values))
        accounting.chmod(0o600)
        (self.folder / "database.port").write_text(str(ports["database"]))

    def _start_database(self) -> None:
        data, port = self.folder / "database", (self.folder / "database.port").read_text()
        start = self.folder / "database.sql"
        start.write_text(
            "CREATE USER IF NOT EXISTS slurm@'127.0.0.1' IDENTIFIED BY 'slurm';\n"
            "GRANT ALL ON slurm.* TO slurm@'127.0.0.1';\n"
        )
        install = ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db"]
        subprocess.run(install, capture_output=True, check=True, env=os.environ | self.environment)
        self._start(
            "mariadbd",
            "--no-defaults",
            "--user=root",
            f"--datadir={data}",
            f"--init-file={start}",
            "--bind-address=127.0.0.1",
            f"--port={port}",
            f"--socket={data}/socket",
            "--skip-name-resolve",
        )
        self._wait_for("mariadbd", lambda: _answers(int(port)))

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as log:
            process = subprocess.Popen(
                [name, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | self.environment,
            )
        (self.folder / f"{name}.started").write_text(str(process.pid))

    def _end(self, name: str, number: signal.Signals) -> None:
        started = self.folder / f"{name}.started"
        if not started.exists():
            return
        process = int(started.read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
        if not _until(lambda: not _runs(process), 20.0):
            os.kill(process, signal.SIGKILL)
        started.unlink()

    def _wait_for(self, name: str, answers: Callable[[], bool]) -> None:
        if not _until(answers, PATIENCE):
            said = (self.folder / f"{name}.out").read_text(errors="replace")[-2000:]
            raise TimeoutError(f"{name} did not answer within {PATIENCE:.0f} s; it said:\n{said}")


@contextlib.contextmanager
def running_cluster(folder: Path, slots: int = 4) -> Iterator[Cluster]:
    cluster = Cluster(folder.absolute(), slots)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.3)
    return holds()


def _runs(process: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, os.WNOHANG)  # of a child of ours, so that it does not stay as a zombie
    return Path(f"/proc/{process}").exists()


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


def _answers(port: int) -> bool:
    with socket.socket() as item:
        return item.connect_ex(("127.0.0.1", port)) == 0


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


if __name__ == "__main__":
    if (why := reason_to_skip()) is not None:
        sys.exit(f"No Slurm here: {why}.")
    cluster = Cluster(Path(sys.argv[2]).absolute())
    {"up": cluster.up, "down": cluster.down}[sys.argv[1]]()
