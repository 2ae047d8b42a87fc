"""An emulated board whose flash is a part of its memory, and that starts from a snapshot.

The memory is a file that the emulator maps. So the flash is there when the emulator is gone, and
the mail, which lies behind the flash, can be read and written while the board runs. A start costs
a second in place of ten: the memory but for the flash is put back to what it was when the board had
booted, and init waits for a job there.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import select
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
JOB_BYTES = 65536
MAIL_BYTES = 8 * MIB
FLASH_BYTES = 6 * MIB
FILES_BYTES_MAX = 24 * MIB
# How long a board may say nothing before it is given up.
SILENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Machine:
    """What the emulator and the kernel are to be told of a processor."""

    emulator: str
    words: tuple[str, ...]
    kernel_words: str
    memory_bytes: int
    # Where the memory begins for the processor, and the flash in it.
    base: int
    flash_at: int


MACHINES = {
    "mipsel": Machine(
        "qemu-system-mipsel",
        ("-M", "malta,memory-backend=ram", "-cpu", "24Kc", "-vga", "none"),
        # A kernel that is moved would lie in the flash.
        f"console=ttyS0 nokaslr memmap={(FLASH_BYTES + MAIL_BYTES) // MIB}M$32M",
        96 * MIB,
        0,
        32 * MIB,
    ),
    "armv7": Machine(
        "qemu-system-arm",
        ("-M", "virt,memory-backend=ram", "-cpu", "cortex-a7"),
        "console=ttyAMA0 mem=96M",
        112 * MIB,
        0x40000000,
        96 * MIB,
    ),
}
MOUNTS = {
    "jffs2": ["mount jffs2 mtd1"],
    "ubifs": ["attach 1", "mount ubifs ubi0_0"],
}
FILE_SYSTEMS = {"jffs2": ("jffs2",), "ubifs": ("deflate", "lzo", "zstd", "ubifs")}


@dataclass
class Boot:
    """What came of a start of the board."""

    # "done", "cut" (by the flash), "killed" (by us), "silent", or "broken".
    end: str
    lines: list[str]
    console: str = field(repr=False)


def archive(files: dict[str, tuple[int, bytes]]) -> bytes:
    """The first file system of a kernel: cpio, as `newc` writes it. Values: mode and contents."""
    out = bytearray()
    entries = [*files.items(), ("TRAILER!!!", (0, b""))]
    for number, (name, (mode, data)) in enumerate(entries, 1):
        # The only device is the console: 5, 1.
        device = (5, 1) if mode & 0o170000 == 0o020000 else (0, 0)
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % value for value in fields)
        out += head + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


class Modules:
    """The kernel's modules below some folders, and what each stands on."""

    def __init__(self, folders: list[Path]) -> None:
        self.files: dict[str, Path] = {}
        for folder in folders:
            for file in folder.rglob("*.ko"):
                self.files[file.stem.replace("-", "_")] = file

    def order(self, wanted: tuple[str, ...]) -> list[str]:
        """The wanted ones and all below, the lowest first. What has no file is in the kernel."""
        found: list[str] = []
        for name in wanted:
            if name in found or name not in self.files:
                continue
            told = re.search(rb"\0depends=([^\0]*)\0", self.files[name].read_bytes())
            below = told.group(1).decode().replace("-", "_").split(",") if told else []
            found += [one for one in self.order(tuple(below)) if one not in found]
            found.append(name)
        return found


class Board:
    """A board with a processor and a file system, e.g. mipsel-jffs2."""

    def __init__(self, name: str, built: Path, folder: Path) -> None:
        """`built` is what ci/power made; the board keeps its files in `folder`."""
        self.name = name
        self.arch, self.file_system = name.split("-")
        self.machine = MACHINES[self.arch]
        self.debian = built / f"debian-{self.arch}"
        self.built = built
        self.folder = folder
        self.flash = slice(self.machine.flash_at, self.machine.flash_at + FLASH_BYTES)
        self.mail = slice(self.flash.stop, self.flash.stop + MAIL_BYTES)
        folder.mkdir(parents=True, exist_ok=True)
        memory = folder / "memory"
        memory.write_bytes(b"")
        os.truncate(memory, self.machine.memory_bytes)
        with memory.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        files = self.first_files()
        # The emulator puts it behind the flash, or between kernel and flash.
        assert len(files) < FILES_BYTES_MAX, len(files)
        (folder / "initrd").write_bytes(files)
        self.empty = b"\xff" * FLASH_BYTES
        self.booted = b""
        self.erase()
        self.snapshot()
        # What formats a flash is done where it is made, and not on the board.
        boot = self.boot([*MOUNTS[self.file_system], "umount"])
        if boot.end != "done" or boot.lines[-1:] != ["DONE"]:
            raise RuntimeError(f"{name} cannot format its flash: {boot}\n{boot.console}")
        self.empty = bytes(self.memory[self.flash])

    def erase(self) -> None:
        """Makes the flash new."""
        self.memory[self.flash] = self.empty

    def first_files(self) -> bytes:
        """What is there before anything is mounted: init, the programs, the modules."""
        modules = Modules([self.debian / "lib/modules", self.built / f"kernel-{self.arch}"])
        start = self.machine.base + self.machine.flash_at
        flash = f"flash start={start} size={FLASH_BYTES} mail={MAIL_BYTES}"
        names = modules.order(("flash", *FILE_SYSTEMS[self.file_system]))
        lines = [f"insmod {flash if name == 'flash' else name}" for name in names]
        files = dict.fromkeys(("dev", "proc", "sys", "mnt", "modules.d"), (0o040755, b""))
        files["dev/console"] = (0o020600, b"")
        files["modules"] = (0o100644, "\n".join(lines).encode())
        for name in names:
            files[f"modules.d/{name}.ko"] = (0o100644, modules.files[name].read_bytes())
        for program in (self.built / f"programs-{self.arch}").iterdir():
            files[program.name] = (0o100755, program.read_bytes())
        return archive(files)

    def start(self, *more: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """The emulator, and a socket for commands to it."""
        [kernel] = (self.debian / "boot").glob("vmlinuz-*")
        libraries = [self.debian / place / "x86_64-linux-gnu" for place in ("lib", "usr/lib")]
        words = [
            self.debian / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            *("--library-path", ":".join(str(folder) for folder in libraries)),
            self.debian / "usr/bin" / self.machine.emulator,
            *("-L", self.debian / "usr/share/qemu"),
            *self.machine.words,
            *("-m", f"{self.machine.memory_bytes // MIB}"),
            "-object",
            f"memory-backend-file,id=ram,size={self.machine.memory_bytes},"
            f"mem-path={self.folder}/memory,share=on",
            *("-kernel", kernel, "-initrd", self.folder / "initrd"),
            *("-append", f"{self.machine.kernel_words} quiet panic=-1 cryptomgr.notests"),
            *("-display", "none", "-nic", "none", "-monitor", "none"),
            *("-serial", "stdio", "-no-reboot", "-qmp", f"unix:{self.folder}/commands"),
            *more,
        ]
        (self.folder / "commands").unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{self.folder}/commands")
            listener.listen()
            listener.settimeout(SILENCE_SECONDS)
            emulator = subprocess.Popen(
                [str(word) for word in words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            commands = listener.accept()[0]
        commands.settimeout(SILENCE_SECONDS)
        self.command(commands, "qmp_capabilities")
        # The memory is in its file.
        shared = [{"capability": "x-ignore-shared", "state": True}]
        self.command(commands, "migrate-set-capabilities", capabilities=shared)
        return emulator, commands

    def command(self, commands: socket.socket, name: str, **arguments: object) -> object:
        """One command to the emulator, and its answer."""
        commands.sendall(json.dumps({"execute": name, "arguments": arguments}).encode())
        text = b""
        while True:
            text += commands.recv(65536)
            for line in text.splitlines():
                try:
                    answer = json.loads(line)
                except ValueError:
                    continue
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise RuntimeError(f"{self.name}: {name}: {answer['error']}")

    def snapshot(self) -> None:
        """Boots, and keeps the machine as it is when init waits for a job."""
        emulator, commands = self.start()
        assert emulator.stdout is not None
        said = b""
        while b"READY" not in said:
            line = emulator.stdout.readline()
            said += line
            if not line:
                raise RuntimeError(f"{self.name} does not boot:\n{said.decode(errors='replace')}")
        self.command(commands, "migrate", uri=f"exec:cat >{self.folder}/state")
        while True:
            answer = self.command(commands, "query-migrate")
            assert isinstance(answer, dict)
            if answer.get("status") == "completed":
                break
            if answer.get("status") == "failed":
                raise RuntimeError(f"{self.name}: no snapshot: {answer}")
            time.sleep(0.05)
        self.end(emulator, commands)
        self.booted = bytes(self.memory)

    def end(self, emulator: subprocess.Popen[bytes], commands: socket.socket) -> None:
        commands.close()
        emulator.kill()
        emulator.wait()
        if emulator.stdout is not None:
            emulator.stdout.close()

    def boot(self, job: list[str], kill_after_ms: int = 0, kill_from: str = "") -> Boot:
        """Does a job until its end, or until the power goes: the flash does that, or we, so long
        after a line that begins with `kill_from` has come."""
        before, behind = slice(0, self.flash.start), slice(self.mail.stop, len(self.memory))
        self.memory[before] = self.booted[before]
        self.memory[behind] = self.booted[behind]
        text = "\n".join([*job, "end", ""]).encode()
        assert len(text) <= JOB_BYTES
        self.memory[self.mail] = text.ljust(MAIL_BYTES, b"\0")
        emulator, commands = self.start("-incoming", "defer")
        self.command(commands, "migrate-incoming", uri=f"exec:cat {self.folder}/state")
        end, console = self.watch(emulator, kill_after_ms, kill_from.encode())
        self.end(emulator, commands)
        # A last line without an end was cut, too.
        lines = self.letters().decode(errors="replace").split("\n")[:-1]
        return Boot(end, lines, console)

    def letters(self) -> bytes:
        """What the board has put into the mail until now."""
        begin = self.mail.start + JOB_BYTES
        return self.memory[begin : max(begin, self.memory.find(b"\0", begin))]

    def watch(
        self, emulator: subprocess.Popen[bytes], kill_after_ms: int, kill_from: bytes
    ) -> tuple[str, str]:
        """How it ended, and the console."""
        assert emulator.stdout is not None
        console = b""
        heard = time.monotonic()
        kill_at, length = 0.0, 0
        while True:
            now = time.monotonic()
            if kill_at and now >= kill_at:
                return "killed", console.decode(errors="replace")
            letters = self.letters() if kill_after_ms else b""
            if len(letters) != length:
                heard, length = now, len(letters)
            if kill_after_ms and not kill_at and kill_from in letters:
                kill_at = now + kill_after_ms / 1000
            if now - heard > SILENCE_SECONDS:
                return "silent", console.decode(errors="replace")
            wait = max(0.0, min(0.02 if kill_after_ms else 1.0, (kill_at or now + 1) - now))
            if select.select([emulator.stdout], [], [], wait)[0]:
                said = os.read(emulator.stdout.fileno(), 65536)
                heard = now
                console += said
                if b"DONE" in console:
                    return "done", console.decode(errors="replace")
                if not said:
                    text = console.decode(errors="replace")
                    broken = re.search(r"panic|Oops|BUG|Call Trace|INIT |qemu", text)
                    return "broken" if broken else "cut", text

    def close(self) -> None:
        self.memory.close()
        shutil.rmtree(self.folder)
