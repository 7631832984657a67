"""`junit.xml`: one test case for each guarantee. UNKNOWN is an error, never a skip."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict


def write_junit(run_dir: Path, result: Result) -> Path:
    """Write the verdict of a run as a JUnit test suite; return the file's path.

    A violated guarantee is a failure, an unknown one an error. The case `verdict` holds the
    verdict with its reasons, so that an UNKNOWN run is an error too. A guarantee that was not
    judged becomes a property instead of a test case.
    """
    suite = ElementTree.Element("testsuite", name=f"urteil.{result.scenario}")
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("seed", "target", "runtime", "command", "mutant"):
        value = str(getattr(result, name))
        ElementTree.SubElement(properties, "property", name=name, value=value)
    _add_verdict(suite, result)
    for guarantee in result.guarantees:
        if guarantee.status is Status.NOT_JUDGED:
            ElementTree.SubElement(properties, "property", name="not judged", value=guarantee.name)
        else:
            _add_guarantee(suite, result, guarantee)
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall(".//failure"))))
    suite.set("errors", str(len(suite.findall(".//error"))))
    suite.set("time", f"{sum(result.seconds.values()):.3f}")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    path = run_dir / "junit.xml"
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return path


def _add_verdict(suite: ElementTree.Element, result: Result) -> None:
    case = _add_case(suite, result, "verdict")
    if result.verdict is not Verdict.PASS:
        kind = "failure" if result.verdict is Verdict.FAIL else "error"
        _add_outcome(case, kind, result.verdict, "\n".join(result.reasons))


def _add_guarantee(suite: ElementTree.Element, result: Result, guarantee: GuaranteeResult) -> None:
    case = _add_case(suite, result, guarantee.name)
    if guarantee.status is Status.VIOLATED:
        sentences = [f.sentence for f in guarantee.findings if f.permitted is None]
        _add_outcome(
            case, "failure", count_text(guarantee.violations, "violation"), "\n".join(sentences)
        )
    elif guarantee.status is Status.UNKNOWN:
        _add_outcome(case, "error", "unknown", guarantee.reason)


def _add_case(suite: ElementTree.Element, result: Result, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=f"urteil.{result.scenario}.{result.target}", name=name
    )


def _add_outcome(case: ElementTree.Element, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, kind, message=message).text = _printable(text)


def _printable(text: str) -> str:
    """`text` without control characters, which XML 1.0 does not allow."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)
