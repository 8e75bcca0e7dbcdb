"""JSON schemas of the documents of ``--format json``, from the types of the records in them.

A record has the keys that ``KEYS`` declares, else its fields; ``SHAPES`` has what a function makes.

    python docs/answers.py      writes netproof/present/schemas
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pkgutil
import re
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from netproof.present.documents import FORMAT, KEYS

FOLDER = Path(__file__).resolve().parents[1] / "netproof" / "present" / "schemas"
ROOMS = (
    *("comparison", "criteria", "diagnosis", "experiments", "history", "measurement", "pairs"),
    *("session", "site", "store", "verdict"),
)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Keys of an object: attributes of a class, as ``documents.some`` names them, and others.

    ``*``: all keys of an attribute's record, or of the class itself; ``more``: keys with their
    types; ``may_lack``: keys that an object may lack; ``lacks``: keys of ``*`` that it lacks.
    """

    of: str
    names: tuple[str, ...]
    more: Mapping[str, str]
    may_lack: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


def shape(
    of: str, *names: str, may_lack: tuple[str, ...] = (), lacks: tuple[str, ...] = (), **more: str
) -> Shape:
    """Return a shape."""
    return Shape(of, names, more, may_lack, lacks)


def case(**more: str) -> Shape:
    """Return the shape of a case with more keys."""
    return shape("Case", "*", **more)


SESSION = {"session": "str", "system": "str", "started": "str | None"}
JOB = ("system", "partition", "environment", "nodes")
FACTOR = ("value", "interval", "most", "side", "why")
COMMON = "CommonSizes | None"
COUNTS = "list[int | None]"
WHERE = {"partition": "str", "environment": "str"}

SHAPES: dict[str, Shape] = {
    # What a verb prints.
    "verdict": shape(
        "Verdict",
        *("launched", "faults", "undecided", "notes", "nodes", "coverage", "pairs", "absences"),
        *("cases", "compared_with", "counters=traffic"),
        **SESSION,
        labels="Mapping[str, str | None]",
        verdict="Literal['pass', 'fail', 'inconclusive', 'cannot be judged']",
        **dict.fromkeys(("passed", "warned", "inconclusive", "failed"), "int"),
        **dict.fromkeys(("launches", "crashed"), "int"),
        recurring="Recurring",
        baseline="ScoreBaseline | None",
        not_compared="tuple[str, ...]",
        nodes_differ="tuple[str, ...]",
        skipped="list[Skipped]",
        crossovers="list[Crossover]",
        stored="StoredVerdict | None",
        changed="ChangedVerdict | None",
        power="list[Power]",
        may_lack=("power",),
    ),
    "diagnose": shape("", **SESSION, partitions="list[Diagnosis]"),
    "compare": shape(
        "Comparison",
        *("first", "second", "geometric_mean=mean", "cases"),
        summary="str",
        differences="list[Difference]",
        nodes="list[NodesDiffer] | None",
        nodes_not_known="str | None",
        not_compared="list[Uncompared]",
    ),
    "compare --by": shape(
        "",
        by="str",
        values="list[str]",
        comparisons="list[compare]",
        not_compared="Mapping[str, str]",
    ),
    "history": shape(
        "HistoryVerdict",
        *("sessions=nights.sessions", "system", "too_few", "tested", "false_alarms_a_month"),
        *("baseline=nights.known.baseline", "unread=nights.unread"),
        *("no_longer_followed=nights.no_longer_followed", "other_sizes=nights.other_sizes"),
        *("accepted=acceptances", "events"),
        verdict="Literal['worse', 'not worse', 'not judged']",
        followed="int",
        crashes="list[CrashCounts]",
        counted="list[NodeCounts]",
        inconclusive="list[InconclusiveCase]",
        bad_nights="list[BadNight]",
        changes="list[Shift]",
        series="list[Series] | None",
    ),
    "judge": shape("FilesVerdict", "status", "faults", "notes", "curves"),
    "measure load": shape("", load="list[Loaded]"),
    "measure gpcnet": shape("", gpcnet="list[GpcnetRuns]"),
    "measure tails": shape("", tails="list[Tail]"),
    "measure tune": shape("", sweeps="list[Sweep]"),
    "measure algorithms": shape("", sweeps="list[AlgorithmSweep]"),
    "references risk": shape(
        "", margin="float", risks="list[ReferenceRisk]", without="list[WithoutRisk]"
    ),
    "site check": shape(
        "",
        system="str",
        verdict="Literal['pass', 'fail']",
        faults="list[SiteError]",
        right="list[str]",
        not_checked="list[str]",
    ),
    "site show": shape(
        "",
        system="str",
        file="str",
        cases="int",
        expected_seconds="float | None",
        sessions="int",
        not_known="str | None",
        partitions="list[ShownPartition]",
        jobs="list[ShownJob]",
        absences="tuple[Absence, ...]",
    ),
    # Parts of them.
    "Accusation": shape("Accusation", "*", sentence="str"),
    "AlgorithmSweep": shape(
        "Sweep",
        *("parameter", "rounds=table.rounds", "drift=table.drift", "disturbed=table.disturbed"),
        *("library", "function=case.function", "ranks=case.ranks"),
        *("left_out=table.disturbed_values",),
        case="str",
        conclusion="str",
        algorithms="list[Algorithm]",
        refused="list[Remark]",
        fell_back="list[Remark]",
        sizes="list[SweepRow]",
    ),
    "Algorithm": shape("", value="str", name="str", set="str"),
    "BadNight": shape(
        "Event", *("partition", "environment", "sentence", "session=session.name", "changes=shifts")
    ),
    "Case": shape(
        "Case",
        *("partition", "environment", "benchmark", "function", "ranks", "ranks_per_node"),
        *("path", "direction"),
    ),
    "CaseVerdict": shape(
        "CaseVerdict",
        *("*case", "faults", "failed_job", "score", "measured", "verdict=level", "expected?"),
        findings="list[CaseFinding]",
        again="Again | None",
    ),
    "Again": shape(
        "Measured",
        *("nodes", "jobid"),
        faults="list[str]",
        crashes="list[Launch]",
        launches="list[Curve]",
    ),
    "CaseFinding": shape(
        "Finding",
        *("criterion", "level", "why", "value", "bound", "against", "node", "interface"),
        *("confirmed", "interval", "size_bytes=size", "sizes_bytes=sizes"),
        "compared_bytes=compared_sizes",
    ),
    "ChangedCase": shape("ChangedCase", "*case", "was", "now", "gone", "new"),
    "ChangedVerdict": shape(
        "",
        stored="StoredVerdict | None",
        cases="list[ChangedCase]",
        gone="list[str]",
        new="list[str]",
    ),
    "CrashCounts": shape("", **WHERE, **dict.fromkeys(("launches", "crashed"), COUNTS)),
    "NodeCounts": shape(
        "",
        partition="str",
        node="str",
        **dict.fromkeys(("segments", "again", "errors", "drops", "carrier_changes"), COUNTS),
    ),
    "CommonSizes": shape("", count="int", least_bytes="int", largest_bytes="int"),
    "ComparedCase": shape(
        "",
        common=COMMON,
        sizes_bytes="list[int]",
        ratios="list[float]",
        ranges="tuple[Range, ...]",
        cpu_s_per_gb="ComparedCosts",
    ),
    "ComparedSide": shape(
        "", started="str | None", labels="Mapping[str, str | None]", system="str"
    ),
    "ComparedCosts": shape("LandmarkRatio", "first", "second", "ratio"),
    "Coverage": shape("Coverage", "*", "failed", "short", "known", sentence="str"),
    "Crossover": shape(
        "Case",
        *("partition", "environment", "benchmark", "function", "path", "direction"),
        ranks="list[int]",
        sentence="str",
        least_red_ranks="int | None",
        missing_ranks="list[int]",
        red="list[CrossoverRed]",
    ),
    "CrossoverRed": shape("", ranks="int", sizes_bytes="list[int]", criteria="list[str]"),
    "CurveVerdict": shape(
        "CurveVerdict",
        *("*kind", "files", "level", "configuration=case.name", "curve=case.curve"),
        "landmarks=case.landmarks",
        launches="int",
        rank_spread="float | None",
        yardstick="bool",
        findings="list[CurveFinding]",
        may_lack=("remark",),
    ),
    "CurveFinding": shape(
        "Finding",
        *("criterion", "level", "against", "value", "bound", "interval", "why"),
        *("size_bytes=size", "sizes_bytes=sizes"),
        common_sizes=COMMON,
    ),
    "Difference": shape("", what="str", first="Any", second="Any", cases="int"),
    "Event": shape(
        "Event",
        *("partition", "environment", "sentence", "session=session.name", "changes=shifts"),
        *("worse", "culprits", "around"),
        before_session="str | None",
    ),
    "Finding": shape("", common=COMMON),
    "GpcnetRuns": shape(
        "GpcnetRuns",
        *(*JOB, "refused", "beyond", "undecided"),
        rounds="int",
        tests="list[GpcnetTest]",
    ),
    "GpcnetTest": shape(
        "Impact",
        *("unit", "name=victim"),
        alone="float | None",
        congested="float | None",
        mean="CongestedFactor",
        tail="CongestedFactor",
    ),
    "CongestedFactor": shape("Factor", *FACTOR),
    "InconclusiveCase": shape("", case="Case", why="tuple[str, ...]", session="str"),
    "InterfaceTotals": shape(
        "InterfaceTotals",
        *("partition", "node", "interface", "under_test=rail"),
        *("segments_sent=again.of", "segments_sent_again=again.count"),
        **dict.fromkeys(("tx_bytes", "rx_bytes", "rx_errs", "tx_errs"), "int | None"),
        **dict.fromkeys(("rx_drop", "tx_drop", "carrier_changes"), "int | None"),
    ),
    "Loaded": shape(
        "Loaded",
        *(*JOB, "beyond", "undecided"),
        causes="tuple[LoadCause, ...]",
        not_examined="tuple[str, ...]",
        factors="list[Impact]",
    ),
    "Impact": shape(
        "Impact",
        *("measured=victim", "load=aggressor", "where=place", "rounds", "refused"),
        "waiting_for_cpu=waited",
        **dict.fromkeys(("mean", "median", "99th percentile"), "LoadFactor"),
    ),
    "LoadFactor": shape("Factor", *FACTOR, "alone_us=alone", "loaded_us=loaded"),
    "Measured": shape(
        "Measured",
        *("crashes", "line_rate_mb_s", "landmarks", "cpu_costs"),
        launches="int",
        curve="MeasuredCurve",
    ),
    "MeasuredCurve": shape("Curve", "*", mad_us="tuple[float, ...]"),
    "NodeFinding": shape("NodeFinding", "*", "environment?"),
    "NodesDiffer": shape("", what="str", first="list[str]", second="list[str]"),
    "PairsVerdict": shape(
        "PairsVerdict",
        *("partition=rounds.partition", "environment=rounds.environment", "faults=rounds.faults"),
        *("alone", "bisection", "accusations=judgement.accusations", "lone_pairs=lone"),
        launches="int",
        nodes="Mapping[str, PairedNode]",
    ),
    "PairedNode": shape("NodeState", "state", "effects", reason="str"),
    "Power": case(launches="int", changes="tuple[Smallest, ...]"),
    "Recurring": shape("", sessions="int", warnings="list[RecurringWarning]"),
    "RecurringWarning": case(criterion="str", size_bytes="int | None"),
    "ReferenceRisk": shape(
        "ReferenceRisk",
        *("*case", "unit", "agreed", "bound", "landmark=variable", "scatter", "plan", "why?"),
        curve="list[RiskPoint]",
    ),
    "RiskPoint": shape("", **dict.fromkeys(("ratio", "passed", "failed", "inconclusive"), "float")),
    "Remark": shape("", value="str", said="str"),
    "Series": shape(
        "Series", "case", "quantity", "values", "inconclusive", level="float", noise="float"
    ),
    "Shift": shape(
        "Shift",
        *("state", "worse", "quantity=of.quantity", "kind=change.kind", "before=change.before"),
        *("after=change.after", "size=change.size", "p_value=change.p_value"),
        **WHERE,
        case="Case | None",
        pooled="int | None",
        session="str",
        found="str",
        ended="str | None",
    ),
    "ShownJob": shape(
        "",
        **WHERE,
        benchmark="str",
        ranks="int",
        mpi="str",
        contention_domain="str",
        why="str",
        expected_seconds="float | None",
        time_limit_s="int",
        cases="list[Case]",
    ),
    "ShownPartition": shape(
        "Partition",
        "*",
        lacks=("baseline", "criteria", "retired"),
        partition="str",
        pairs_in="list[str]",
    ),
    "SiteError": shape("", **dict.fromkeys(("place", "key", "reason", "file"), "str")),
    "Skipped": shape("", **WHERE, cases="list[Case]", why="str", planned="bool"),
    "StoredGroup": shape(
        "StoredResult",
        *("session", "marks", "started", "days_before=days"),
        **WHERE,
        left_out="bool",
        cases="list[StoredResult]",
    ),
    "StoredResult": shape("StoredResult", "*case", "score", "measured"),
    "StoredResults": shape(
        "StoredResults", "store", "max_age_days", "not_found", sessions="list[StoredGroup]"
    ),
    "StoredVerdict": shape("", at="str", netproof="str", differs="tuple[str, ...]"),
    "Sweep": shape(
        "Sweep",
        *("parameter", "rounds=table.rounds", "drift=table.drift", "disturbed=table.disturbed"),
        "own",
        case="str",
        eager_steps="list[EagerStep] | None",
        values="list[SweptValue]",
        recommended="Recommended | None",
    ),
    "EagerStep": shape("", value="str | None", sizes="tuple[int, int] | None"),
    "Recommended": shape(
        "SweepRow",
        *("as_good", "value=winner", "for=at"),
        set="str",
        gain="Gain",
        costs="Mapping[str, Gain]",
        sentence="str",
    ),
    "SweepRow": shape("SweepRow", "winner", "as_good", "gains", "bytes=at", sentence="str"),
    "SweptValue": shape(
        "", value="str", set="str", ranges="Mapping[str, Gain]", by_size="list[tuple[int, float]]"
    ),
    "Tail": shape(
        "Tail",
        *(*JOB, "bytes", "pauses", "paused_share", "disturbed", "most", "beyond", "undecided"),
        *("started=launch.start", "seconds=took_s", "segments_sent_again=sent_again"),
        calls="int",
        mean_us="float",
        longest_us="float",
        percentiles="list[Percentile]",
        carrier_changes="list[CarrierChange]",
    ),
    "Percentile": shape("", level="float", value_us="float", interval_us="tuple[float, float]"),
    "CarrierChange": shape("", node="str", interface="str", changes="int"),
    "Uncompared": case(measured_by="str", why="str"),
    "WithoutRisk": case(why="str"),
}
"""Objects that functions make, by name; a name of a verb is what it prints."""


VERBS = tuple(name for name in SHAPES if name[0].islower())
"""Verbs that print JSON, as one types them."""


@cache
def _classes() -> dict[str, Any]:
    """Return all types of the rooms by their names."""
    found = dict(vars(typing))
    for room in ROOMS:
        package = importlib.import_module(f"netproof.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            every = vars(importlib.import_module(module.name))
            found |= {name: one for name, one in every.items() if name[:1].isupper()}
    return found


def _evaluated(annotation: Any, names: Mapping[str, Any]) -> Any:
    return eval(annotation, dict(names)) if isinstance(annotation, str) else annotation


def _written(owner: Any, annotation: Any) -> Any:
    """Return a type as the module of ``owner`` writes it."""
    return _evaluated(annotation, _classes() | vars(inspect.getmodule(owner)))


SHAPED = {name: type(name, (), {}) for name in SHAPES}
"""Types that stand for the shapes."""


def _attribute(owner: Any, name: str) -> Any:
    """Return the type of a class's attribute, or of what its method returns."""
    for base in inspect.getmro(owner):
        if issubclass(base, BaseModel) and name in base.model_fields:
            return base.model_fields[name].annotation
        if name in vars(base).get("__annotations__", {}):
            return _written(base, base.__annotations__[name])
        if name in vars(base):
            found = vars(base)[name]
            of = getattr(found, "fget", getattr(found, "func", found))
            return _written(of, of.__annotations__["return"])
    raise TypeError(f"{owner.__name__} has no {name}")


def _some(owner: Any, name: str) -> tuple[str, Any]:
    """Return a key and its type, as ``documents.some`` names them."""
    key, attribute = name.partition("=")[0].rstrip("?"), name.rpartition("=")[2]
    kind = owner
    for step in attribute.rstrip("?").split("."):
        kind = _attribute(_sure(kind), step)
    return key, kind | None if attribute.endswith("?") else kind


def _fields(owner: Any) -> dict[str, Any]:
    names = (
        owner.model_fields
        if issubclass(owner, BaseModel)
        else [one.name for one in dataclasses.fields(owner)]
    )
    return {name: _attribute(owner, name) for name in names}


def _keys(name: str, owner: Any) -> dict[str, Any]:
    """Return the keys of an object with their types; ``owner``: its class, if it has one."""
    made, declared = SHAPES.get(name), KEYS.get(name)
    keys: dict[str, Any] = {}
    if made is None and declared is None:
        return _fields(owner)
    if isinstance(declared, partial) and not (made and made.names):
        names, by = declared.args
        keys = dict(_some(owner, one) for one in names)
        if lacking := set(by) - set(made.more if made else ()):
            raise TypeError(f"{name}: no types of {lacking}")
    elif made is None:
        raise TypeError(f"{name} has no shape")
    if made is not None:
        of = _classes().get(made.of)
        for one in made.names:
            if one == "*":
                keys |= _fields(of) if made.of == name or of.__name__ not in KEYS else _of(of)
            elif one.startswith("*"):
                keys |= _of(_sure(_attribute(of, one[1:])))
            else:
                keys |= [_some(of, one)]
        keys = {key: kind for key, kind in keys.items() if key not in made.lacks}
        keys |= {key: _evaluated(kind, _classes() | SHAPED) for key, kind in made.more.items()}
    return keys


def _sure(kind: Any) -> Any:
    """Return a type without None."""
    if not isinstance(kind, types.UnionType):
        return kind
    return next(one for one in typing.get_args(kind) if one is not type(None))


def _of(owner: Any) -> dict[str, Any]:
    return _keys(_name(owner), owner)


def _name(owner: Any) -> str:
    """Return the name of a record's keys: that of the class that declares them."""
    names = [one.__name__ for one in inspect.getmro(owner)]
    return next((one for one in names if one in KEYS or one in SHAPES), owner.__name__)


class Schema:
    """The schema of what a verb prints, with the definitions that it takes."""

    def __init__(self, verb: str) -> None:
        self.definitions: dict[str, Any] = {}
        keys = {"format": typing.Literal[FORMAT], **_keys(verb, None)}
        self.schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"What netproof {verb} --format json prints",
            **self._object(keys, verb),
            "$defs": self.definitions,
        }

    def _object(self, keys: Mapping[str, Any], name: str) -> dict[str, Any]:
        optional = SHAPES[name].may_lack if name in SHAPES else ()
        return {
            "type": "object",
            "properties": {key: self.of(kind) for key, kind in keys.items()},
            "required": [key for key in keys if key not in optional],
            "additionalProperties": False,
        }

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type, as ``documents.plain`` writes its values."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self.of(arguments[0])
        if origin in (typing.Union, types.UnionType):
            return self._union([self.of(one) for one in arguments])
        if origin is typing.Literal:
            return {"enum": list(arguments)} if arguments[1:] else {"const": arguments[0]}
        if isinstance(kind, typing.NewType):
            return self.of(kind.__supertype__)
        if kind in _SCALARS:
            return {"type": _SCALARS[kind]} if _SCALARS[kind] else {}
        if origin is tuple and arguments[-1] is not ...:
            return self._tuple(arguments)
        if inspect.isclass(origin) and issubclass(origin, Mapping):
            names = _literals(arguments[0])
            named = {"propertyNames": {"enum": names}} if names else {}
            return {"type": "object", **named, "additionalProperties": self.of(arguments[-1])}
        if origin is not None:
            return {"type": "array", "items": self.of(arguments[0])}
        if issubclass(kind, Enum):
            return {"enum": _literals(kind)}
        name = _name(kind)
        if name not in self.definitions:
            self.definitions[name] = None
            self.definitions[name] = self._object(_of(kind), name)
        return {"$ref": f"#/$defs/{name}"}

    def _union(self, several: list[dict[str, Any]]) -> dict[str, Any]:
        simple = [one["type"] for one in several if set(one) == {"type"}]
        if len(simple) == len(several):
            return {"type": simple}
        return {"anyOf": several}

    def _tuple(self, kinds: tuple[Any, ...]) -> dict[str, Any]:
        items = [self.of(kind) for kind in kinds]
        if kinds == (float, float):
            # The upper end of an interval may be infinite.
            items[1] = {"type": ["number", "null"]}
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}


_SCALARS: dict[Any, str] = {
    **{str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"},
    **{Path: "string", datetime: "string", Any: "", object: ""},
}


def _literals(kind: Any) -> list[Any]:
    """Return the values of an enumeration; none of other types."""
    return [one.value for one in kind] if inspect.isclass(kind) and issubclass(kind, Enum) else []


def file_name(verb: str) -> str:
    """Return the name of the file that has the schema of a verb."""
    return re.sub(r"\W+", "-", verb) + ".json"


def texts() -> dict[str, str]:
    """Return the schema of each verb as a file has it, a definition on a line."""
    made = {}
    for verb in VERBS:
        schema = Schema(verb).schema
        parts = schema.pop("$defs")
        lines = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in schema.items()]
        defined = [f"{json.dumps(key)}: {json.dumps(parts[key])}" for key in sorted(parts)]
        lines.append('"$defs": {\n' + ",\n".join(defined) + "\n}")
        made[file_name(verb)] = "{\n" + ",\n".join(lines) + "\n}\n"
    return made


def written_types(schema: Mapping[str, Any]) -> str:
    """Return a type of a schema in words; a record by its name."""
    kind = schema.get("type")
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(map(written_types, schema["anyOf"]))
    if isinstance(kind, list):
        return " or ".join(kind)
    if "prefixItems" in schema:
        return f"array of {', '.join(map(written_types, schema['prefixItems']))}"
    if kind == "array":
        return f"array of {written_types(schema['items'])}"
    if kind == "object":
        return f"object of {written_types(schema['additionalProperties'])}"
    return kind or "any value"


if __name__ == "__main__":
    for file, text in texts().items():
        (FOLDER / file).write_text(text)
