"""The time of one training step by kernel, from the CSV output of Nsight Compute.

    ncu --metrics gpu__time_duration.sum --csv ... > ncu.csv
    python3 kernel_times.py ncu.csv
"""

import collections
import csv
import sys

UNIT = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3}
LIBRARY = ("nvjet", "cublas", "gemm", "cutlass")


def kernels(path):
    """(name, microseconds) of every kernel launch, in order."""
    rows = [row for row in csv.reader(open(path, newline="")) if len(row) > 10]
    head = rows[0]
    name, value, unit = (head.index(key) for key in ("Kernel Name", "Metric Value", "Metric Unit"))
    for row in rows[1:]:
        yield row[name].split("(")[0], float(row[value].replace(",", "")) * UNIT[row[unit]]


def main():
    every = list(kernels(sys.argv[1]))
    ends = [at for at, (name, _) in enumerate(every) if name == "adam"]
    if len(ends) < 2:
        sys.exit("the file does not contain a whole step: record more kernels")
    totals = collections.defaultdict(lambda: [0, 0.0])
    for name, time in every[ends[0] + 1 : ends[1] + 1]:
        name = "GEMM (cuBLASLt)" if any(word in name for word in LIBRARY) else name
        totals[name][0] += 1
        totals[name][1] += time
    whole = sum(time for _, time in totals.values())
    print(f"{'one step, by kernel':<32} {'launches':>8} {'µs':>9} {'share':>6}")
    for name, (count, time) in sorted(totals.items(), key=lambda item: -item[1][1]):
        print(f"{name:<32} {count:>8} {time:>9.1f} {100 * time / whole:>5.1f}%")
    print(f"{'all':<32} {sum(count for count, _ in totals.values()):>8} {whole:>9.1f}")


if __name__ == "__main__":
    main()
