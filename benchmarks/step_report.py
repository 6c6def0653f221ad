"""Medians, ratios and the page of step_speed.py."""

import statistics
from typing import Any


def summarize(result: dict[str, Any]) -> None:
    """Add to ``result`` what the rounds come to."""
    result["summary"] = {size: _of_size(result, size) for size in result["models"]}


def _of_size(result: dict[str, Any], size: str) -> dict[str, Any]:
    rounds = [entry for entry in result["rounds"] if entry["size"] == size]
    rates = [entry for entry in rounds if entry["contender"] == "matrix-rate"]
    model = result["models"][size]
    precisions = model["task"]["precisions"]
    rate = {name: statistics.median(each[name] for each in rates) for name in precisions}
    contenders: dict[str, Any] = {}
    for name in dict.fromkeys(entry["contender"] for entry in rounds):
        if name == "matrix-rate":
            continue
        entries = [entry for entry in rounds if entry["contender"] == name]
        seconds = statistics.median(entry["seconds"] for entry in entries)
        speeds = [entry["tokens_per_second"] for entry in entries]
        contenders[name] = {
            "tokens_per_second": round(statistics.median(speeds), 1),
            "spread": [round(min(speeds), 1), round(max(speeds), 1)],
            "share_of_matrix_rate": round(
                model["operations"] / seconds / rate[name.rsplit("-", 1)[1]], 3
            ),
            "tokens_per_cpu_second": round(
                statistics.median(
                    entry["target_tokens"] / entry["processor_seconds"] for entry in entries
                ),
                1,
            ),
            "peak_memory_mb": max(entry["peak_memory_mb"] for entry in entries),
        }
    peers = {
        name: each["tokens_per_second"]
        for name, each in contenders.items()
        if not name.startswith("pellucid")
    }
    fastest = max(peers, key=peers.__getitem__) if peers else None
    for each in contenders.values():
        if fastest is not None:
            each["over_fastest_peer"] = round(each["tokens_per_second"] / peers[fastest], 2)
    return {
        "matrix_rate_gflops": {name: round(value / 1e9, 1) for name, value in rate.items()},
        "tokens_per_second_at_matrix_rate": {
            name: round(model["target_tokens"] * value / model["operations"])
            for name, value in rate.items()
        },
        "fastest_peer": fastest,
        "contenders": contenders,
    }


def report(result: dict[str, Any]) -> str:
    """The result as a page."""
    about = result["machine"]
    versions = ", ".join(f"{name} {value}" for name, value in about["versions"].items())
    lines = ["# Speed of one update", "", result["counted"], ""]
    for size, summary in result["summary"].items():
        lines += _section(size, summary, result["models"][size])
    lines += [
        *([f"- all on {about['gpu']}"] if "gpu" in about else []),
        f"- machine: {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB,"
        f" load {about['load_before']} before the start; {result['threads']} threads each",
        f"- {about['date']}, commit {about['commit']}, Python {about['python']}, {versions}",
        f"- `{result['command']}`",
    ]
    return "\n".join(lines) + "\n"


def _section(size: str, summary: dict[str, Any], model: dict[str, Any]) -> list[str]:
    rate, limit = summary["matrix_rate_gflops"], summary["tokens_per_second_at_matrix_rate"]
    padding = 1.0 - model["target_tokens"] / model["padded_target_tokens"]
    lines = [
        f"## {size}",
        "",
        "| contender | target tokens/s | of the rounds | over the fastest peer |"
        " tokens per CPU-second | share of the matrix rate | peak memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, each in summary["contenders"].items():
        low, high = each["spread"]
        ratio = each.get("over_fastest_peer")
        lines.append(
            f"| {name} | {each['tokens_per_second']:,.0f} | {low:,.0f}-{high:,.0f} |"
            f" {'-' if ratio is None else f'{ratio:.2f}'} |"
            f" {each['tokens_per_cpu_second']:,.0f} |"
            f" {each['share_of_matrix_rate']:.0%} | {each['peak_memory_mb']:,} |"
        )
    return [
        *lines,
        "",
        f"- the fastest peer is {summary['fastest_peer']}",
        f"- {model['updates']} updates in a round, {model['target_tokens']:,} target tokens,"
        f" {padding:.1%} of the target padded, {model['operations'] / 1e9:,.0f} GFLOP",
        *(
            f"- matrix rate, {name}: {rate[name]:,.0f} GFLOP/s, which would allow"
            f" {limit[name]:,} target tokens/s"
            for name in rate
        ),
        "",
    ]
