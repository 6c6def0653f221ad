"""The page of `quality.py`'s results."""

import statistics
from collections.abc import Sequence
from typing import Any

from quality_experiments import EXPERIMENTS

Row = dict[str, Any]
_HELPERS = {
    "teachers": "taught by",
    "translated_by": "learns also from the sources as translated by",
    "translated_back_by": "learns also from the targets as translated by",
}
"""What the runs that a row names did for it."""


def page(result: dict[str, Any]) -> str:
    """Everything that was run, as Markdown."""
    parts = [
        "# Quality\n",
        "Written by `benchmarks/quality.py`; nothing here is edited by hand.\n",
        f"{result['counted']}\n",
        f"- Command: `{result['command']}`",
    ]
    for name, experiment in EXPERIMENTS.items():
        rows = [row for row in result["rows"] if row["experiment"] == name]
        if rows:
            # a row may be of a variant that this version no longer has: those come last
            order = [variant.name for variant in experiment.variants]
            order += sorted({row["variant"] for row in rows}.difference(order))
            rows.sort(key=lambda row: (order.index(row["variant"]), row["seed"]))
            parts += [f"\n## {experiment.title}\n", *_section(rows)]
    return "\n".join(parts) + "\n"


def _section(rows: Sequence[Row]) -> list[str]:
    first = rows[0]
    changed = ", ".join(f"`{each}`" for each in first["settings"]) or "nothing changed"
    if len({row["variant"] for row in rows}) > 1:
        changed = "each with what its row names"
    return [
        f"Preset `{first['preset']}`, {changed}. {_machine(rows)}\n",
        *_table([_cells(row) | _gain(row, rows) for row in rows]),
        *_settings(rows),
        *_means(rows),
        *_curves(rows),
        *_signatures(rows),
    ]


def _cells(row: Row) -> dict[str, str]:
    cells = {"variant": row["variant"]} if row["variant"] else {}
    if "averages" in row:
        minutes = f"{row['cpu_minutes']:.0f} of its {len(row['averages'])} runs"
        cells |= {"CPU minutes": minutes, "parameters": f"{row['parameters']:,}"}
    else:
        cells |= {"seed": str(row["seed"]), **_trained(row)}
    return cells | _scores(row)


def _trained(row: Row) -> dict[str, str]:
    took = row["command_minutes"]
    allowed = f"{row['minutes']:g} ({took:.1f} in all)" if took >= row["minutes"] else f"{took:.1f}"
    # of a run whose journal counts CPU time, the clock tells only what else the machine did
    is_counted = "cpu_minutes" in row
    cells = {"minutes": "" if is_counted else f"{row['minutes']:g}" if row["resumed"] else allowed}
    cells["CPU minutes"] = f"{row['cpu_minutes']:.0f}" if is_counted else ""
    if "teachers_cpu_minutes" in row:
        helpers = "teachers" if "teachers" in row else "translators"
        cells["CPU minutes"] += f" and {row['teachers_cpu_minutes']:.0f} of its {helpers}"
    cells |= {
        "parameters": f"{row['parameters']:,}",
        "updates": f"{row['updates']:,}",
        "tokens": f"{row['target_tokens'] / 1e6:.1f} M",
        "tokens/s": f"{row['tokens_per_second']:,.0f} ({row['precision']})",
        "valid loss": f"{row['best']['loss']:.3f}",
        "valid BLEU": f"{row['best']['bleu']:.2f}",
        "valid exact": f"{row['best']['exact_match']:.1f}%",
    }
    if row["goal"] is not None:
        minutes = row.get("goal_cpu_minutes", row["goal_minutes"])
        unit = "CPU min" if "cpu_minutes" in row else "min"
        cells[f"BLEU {row['goal']:g} after"] = f"{minutes:.1f} {unit}" if minutes else "never"
    return cells


def _scores(row: Row) -> dict[str, str]:
    return {
        f"{test} {name}": f"{figures[name]:.2f}"
        for test, figures in row["tests"].items()
        for name in figures["signatures"]
    }


def _gain(row: Row, rows: Sequence[Row]) -> dict[str, str]:
    """Validation BLEU beyond that of the first variant with the same seed, if there are several."""
    variants = [variant.name for variant in EXPERIMENTS[row["experiment"]].variants]
    first = [
        other for other in rows if other["variant"] == variants[0] and other["seed"] == row["seed"]
    ]
    if len(variants) == 1 or not first or "averages" in row:
        return {}
    return {"gain": f"{row['best']['bleu'] - first[0]['best']['bleu']:+.2f}"}


def _table(rows: Sequence[dict[str, str]]) -> list[str]:
    # a column that is empty in every row tells nothing
    names = dict.fromkeys(name for row in rows for name in row)
    head = [name for name in names if any(row.get(name) for row in rows)]
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row.get(name, '') for name in head)} |" for row in rows),
    ]


def _settings(rows: Sequence[Row]) -> list[str]:
    """What each variant changes in the preset, if there are several."""
    by_variant = {row["variant"]: row for row in rows}
    if len(by_variant) == 1:
        return []

    lines = [""]
    for variant, row in by_variant.items():
        first = ", ".join(f"`{each}`" for each in row.get("first", ()))
        own = ", ".join(f"`{each}`" for each in row["settings"]) or "nothing"
        line = f"- {variant}: {own}" + (f"; begins with a run of {first}" if first else "")
        if "averages" in row:
            line = f"- {variant}: the parameters are the mean of those of " + ", ".join(
                f"`{each}`" for each in row["averages"]
            )
        if "begins_with" in row:
            line += f"; begins as `{row['begins_with']}`"
        for kind, told in _HELPERS.items():
            if kind in row:
                line += f"; {told} " + ", ".join(f"`{each}`" for each in row[kind])
        if row.get("draws"):
            line += ", at random"
        if "recombined" in row:
            line += f"; learns also from {row['recombined']:,} recombined sources as they translate"
            if "recombined_seed" in row:
                line += ", the same for all seeds"
        lines.append(line)
    return lines


def _means(rows: Sequence[Row]) -> list[str]:
    """Mean and spread over the seeds, of each variant that has several."""
    lines = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in rows if row["variant"] == variant]
        if len(own) < 2:
            continue
        figures = {"valid BLEU": [row["best"]["bleu"] for row in own]}
        for test, counted in own[0]["tests"].items():
            for name in counted["signatures"]:
                figures[f"{test} {name}"] = [row["tests"][test][name] for row in own]
        told = "; ".join(f"{name} {_spread(values)}" for name, values in figures.items())
        lines.append(f"\n{variant or 'Mean'} over {len(own)} seeds (lowest to highest): {told}.")
    return lines


def _spread(values: Sequence[float]) -> str:
    deviation = statistics.stdev(values)
    return (
        f"{statistics.mean(values):.2f} ± {deviation:.2f} ({min(values):.2f} to {max(values):.2f})"
    )


def _curves(rows: Sequence[Row]) -> list[str]:
    """Validation BLEU against minutes, where that was the question."""
    lines = []
    for row in rows:
        if row.get("goal") is not None:
            points = ", ".join(f"{minutes:.1f}: {bleu:.1f}" for minutes, _, bleu in row["curve"])
            who = ", ".join(filter(None, (row["variant"], f"seed {row['seed']}")))
            lines.append(f"\nGreedy validation BLEU by minute, {who}: {points}.")
    return lines


def _signatures(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"- {test} {name}, {which}: `{signature}`"
        for row in rows
        for which in ["average" if "averages" in row else f"seed {row['seed']}"]
        for test, figures in row["tests"].items()
        for name, signature in figures["signatures"].items()
    ]
    return ["\nSignatures:\n", *lines] if lines else []


def _machine(rows: Sequence[Row]) -> str:
    told = {
        f"{about['cores']} cores of {about['cpu']}, torch {about['versions']['torch']},"
        f" commit {about['commit']}, {about['date'][:10]}"
        for about in (row["machine"] for row in rows)
    }
    return "Made on " + "; and on ".join(sorted(told)) + "."
