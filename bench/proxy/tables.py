"""How figures of a benchmark are shown."""
import statistics
import sys


def spread_of(values, form):
    """Of several rounds: the median, and from the least to the most."""
    middle = form % statistics.median(values)
    return middle if len(values) == 1 else f"{middle} ({form % min(values)}..{form % max(values)})"


def print_table(rows):
    """Of texts; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                        for i, (text, width) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()
