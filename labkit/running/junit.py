"""The report as JUnit XML, which CI systems show: a test case per kernel, which fails if it has errors."""

from xml.etree import ElementTree

from labkit.running.collector import Collector
from labkit.running.text import describe, short_path


def to_junit(collector: Collector, time_s: float) -> str:
    """Return a JUnit test suite."""
    suite = ElementTree.Element("testsuite", name="labkit run", time=f"{time_s:.3f}")
    failures = 0
    for kernel in collector.kernels.values():
        file = short_path(kernel.file)
        case = ElementTree.SubElement(
            suite, "testcase", classname=file, name=kernel.kernel, file=file, line=str(kernel.line),
            time=f"{kernel.time_s:.3f}",
        )  # fmt: skip
        if errors := collector.of_kernel(kernel, "error"):
            failures += 1
            failure = ElementTree.SubElement(case, "failure", message=errors[0].finding.message)
            failure.text = "\n\n".join(map(describe, errors))
        if advice := collector.of_kernel(kernel, "advice"):
            ElementTree.SubElement(case, "system-out").text = "\n\n".join(map(describe, advice))
    suite.attrib |= {"tests": str(len(collector.kernels)), "failures": str(failures)}
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
