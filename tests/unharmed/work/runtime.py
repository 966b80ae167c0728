"""Threads, processes, a stack that is full, a null pointer in a child, collections of garbage."""

import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading


def deep(n):
    return deep(n + 1) + 1


def null_pointer():
    ctypes.string_at(0)


def squares(n):
    return sum(i * i for i in range(n))


if __name__ == "__main__":
    try:
        deep(0)
    except RecursionError as error:
        print("full:", str(error).split(" while")[0])
    found = []
    threads = [threading.Thread(target=lambda: found.append(len(bytearray(1 << 20)))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(found), gc.collect() >= 0)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(squares, [1000, 2000, 3000]))
    child = multiprocessing.get_context("fork").Process(target=null_pointer)
    child.start()
    child.join()
    print("child", child.exitcode)
    print(subprocess.run([sys.executable, "-c", "import sys; sys.exit(9)"], check=False).returncode)
    signal.signal(signal.SIGPROF, lambda *_: found.append(0))
    signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
    squares(2_000_000)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print("ticks", 0 in found)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGTERM)
