"""Answers that attack as programs, when they run: by name, the text of the cell. None harms what is outside.

`$MARK` is a file outside that none may make, `$SECRET` one that none may read, `$PORT` where something listens.
"""

MARK = "pathlib.Path('$MARK').write_text('made')"
PROGRAMS = {
    "makes a file": f"import pathlib\n{MARK}",
    "makes a file in many places": (
        "import itertools, pathlib\nfor place in itertools.chain(pathlib.Path('$MARK').parents, map(pathlib.Path, "
        "['/usr', '/etc', '/root', '/var/tmp', '/dev/shm'])):\n    try:\n"
        "        (place / 'mark').write_text('made')\n    except OSError:\n        pass"
    ),
    "changes labkit": (
        "import labkit, pathlib\nfor path in pathlib.Path(labkit.__file__).parent.rglob('*.py'):\n"
        "    path.write_text('')"
    ),
    "reads the secret": "print(open('$SECRET').read())\nraise ValueError(open('$SECRET').read())",
    "looks for solutions": (
        "import labkit, pathlib\nfound = [*pathlib.Path(labkit.__file__).parents[1].glob('notebooks/**/*.ipynb')]\n"
        "raise ValueError(['canary-' + '7f3a9' if found else 'nothing'])"
    ),
    "reads its environment": "import os\nraise ValueError(dict(os.environ))",
    "reads others' environments": (
        "import glob\ntexts = []\nfor path in glob.glob('/proc/[0-9]*/environ'):\n    try:\n"
        "        texts.append(open(path).read())\n    except OSError:\n        pass\nraise ValueError(texts)"
    ),
    "reads others' memory": "import os\nos.kill(1, 0)\nopen('/proc/1/mem', 'rb').read(10)",
    "reads passwords": "raise ValueError(open('/etc/passwd').read())",
    "calls the network": (
        "import socket\nconnection = socket.create_connection(('127.0.0.1', $PORT), 2)\n"
        "connection.sendall(b'here')\nconnection.close()"
    ),
    "calls the world": "import socket\nsocket.create_connection(('192.0.2.1', 80), 2)",
    "kills all": "import os, signal\nos.kill(-1, signal.SIGKILL)",
    "kills its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "kills itself": "import os\nos._exit(1)",
    "forks": (
        "import os, time\ncount = 0\nwhile count < 400:\n    if os.fork() == 0:\n        time.sleep(30)\n"
        "        os._exit(0)\n    count += 1"
    ),
    "stays behind": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n"
        f"    import pathlib\n    time.sleep(1)\n    {MARK}\n    time.sleep(600)"
    ),
    "takes all memory": "held = []\nwhile True:\n    held.append(bytearray(64 << 20))",
    "takes all memory in many": (
        "import os\nfor _ in range(20):\n    if os.fork() == 0:\n        held = bytearray(b'1') * (400 << 20)\n"
        "        __import__('time').sleep(30)\nheld = bytearray(b'1') * (400 << 20)\n__import__('time').sleep(30)"
    ),
    "fills the disk": (
        "for place in ('.', '/tmp', '/dev/shm'):\n    for number in range(1000):\n        try:\n"
        "            open(f'{place}/{number}', 'wb').write(bytes(8 << 20))\n        except OSError:\n            break"
    ),
    "floods its output": "import os\nwhile True:\n    os.write(1, b'x' * 65536)",
    "floods the notebook": "for _ in range(200_000):\n    print('x' * 100)",
    "forges results": (
        "import os, json\nfor id in ('write-saxpy', 'rows-and-columns', 'neighbours-together', 'the-game-of-life'):\n"
        "    os.write(1, json.dumps({'cell': f'exercise-{id}', 'passed': True, 'said': 'solved'}).encode() + b'\\n')"
    ),
    "forges results in kind": (
        "import os\nos.write(1, b'{\"cell\": [1], \"passed\": {}}\\n{' + b'[' * 100_000 + b'\\n{}\\n')"
    ),
    "moves the terminal": "raise ValueError('\\x1b[2J\\x1b[31m\\u202e</script><script>alert(1)</script>=cmd()|`')",
    "raises what is endless": "raise ValueError('x' * 50_000_000)",
    "sleeps": "import time\nwhile True:\n    try:\n        time.sleep(1000)\n    except BaseException:\n        pass",
    "will not stop": (
        "import signal\nfor n in range(1, 65):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\nwhile True:\n    pass"
    ),
    "mounts": (
        "import ctypes\nif ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0:\n"
        "    raise ValueError('canary-' + '7f3a9')"
    ),
    "makes a device": "import os\nos.mknod('disk', 0o60600, os.makedev(8, 0))\nraise ValueError('canary-' + '7f3a9')",
    "becomes root": "import os\nos.setuid(0)\nraise ValueError('canary-' + '7f3a9')",
    "leaves a startup file": (
        "import pathlib\nstart = pathlib.Path.home() / '.ipython/profile_default/startup'\n"
        "start.mkdir(parents=True, exist_ok=True)\n(start / '0.py').write_text('raise SystemExit')"
    ),
    "gives to the terminal": "import fcntl, termios\nfor c in 'ls\\n':\n    fcntl.ioctl(0, termios.TIOCSTI, c)",
}
