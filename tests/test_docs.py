"""The documents are true: code blocks run, names exist, links lead somewhere, the site builds."""

import contextlib
import hashlib
import importlib
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from habitus import Corpus, SceneModel, scene
from habitus.ingest.clips import DocumentSettings
from habitus.inputs import Ingestion
from habitus.progress import Progress
from habitus.scene import learn_scene
from reference.commands import Done, habitus
from reference.made_once import made_once

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
START = DOCS / "start.md"
WRITTEN = [page for page in PAGES if page.name != "commands.md"]
# A camera that needs no network: commands and code of the pages are run on a file instead.
STAND_INS = {"rtsp://camera/stream": "later.mp4"}

BLOCK = re.compile(
    r"^(?P<mark><!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block of Python or of a console that the tests run."""

    language: str
    code: str
    line: int


class Command(NamedTuple):
    """A command of a console block and the output that the page shows, if any."""

    line: str
    output: str


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that are to be run, in order."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        if found["language"] in ("python", "console") and not found["reason"]:
            code = textwrap.dedent(found["code"])
            for name, stand_in in STAND_INS.items():
                code = code.replace(name, stand_in)
            yield Block(found["language"], code, text[: found.start("code")].count("\n") + 1)


def commands_of(code: str) -> list[Command]:
    """Split a console block into commands; `> ` continues a command."""
    commands: list[Command] = []
    for line in code.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ""))
        elif line.startswith("> ") and not commands[-1].output:
            commands[-1] = Command(f"{commands[-1].line}\n{line[2:]}", "")
        else:
            commands[-1] = Command(commands[-1].line, f"{commands[-1].output}{line}\n")
    return commands


def matches(shown: str, printed: str) -> bool:
    """Compare outputs by their words; `...` on the page stands for any text."""
    wanted = ".*?".join(re.escape(" ".join(part.split())) for part in shown.split("..."))
    return re.fullmatch(wanted.replace(r"\ ", " ?"), " ".join(printed.split())) is not None


def rendering_block() -> Block:
    """Return the block that renders the footage of all pages."""
    return next(block for block in blocks_of(START) if "render(" in block.code)


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """A small junction, as the page "Start in five minutes" renders it."""

    def make(folder):
        with contextlib.chdir(folder):
            exec(rendering_block().code, {"__name__": "page"})  # noqa: S102

    made = made_once(tmp_path_factory, "footage", make)
    return shutil.copytree(made, tmp_path_factory.mktemp("pages") / "footage")


@pytest.fixture
def workplace(footage, monkeypatch, tmp_path_factory):
    """A folder with that footage, in which `habitus` is a command, and nothing else."""
    monkeypatch.chdir(footage)
    binaries = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    learn = partial(learn_once, tmp_path_factory)
    monkeypatch.setattr(scene, "learn_scene", learn)

    def extract(ingestion, sources, settings):
        return extract_once(tmp_path_factory, ingestion, sources, settings)

    monkeypatch.setattr(Ingestion, "extract", extract)
    before = {path: path.read_bytes() for path in footage.iterdir()}
    yield footage
    for path in footage.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path not in before:
            path.unlink()
    assert {path: path.read_bytes() for path in footage.iterdir()} == before


extract = Ingestion.extract


def extract_once(factory: pytest.TempPathFactory, ingestion, sources, settings):
    """Extract as `Ingestion` does; most pages read the same footage in the same way."""
    digests = [hashlib.sha256(Path(source.address).read_bytes()).hexdigest() for source in sources]
    how = [source.name for source in sources], settings or DocumentSettings(), ingestion.reading

    def make(folder: Path) -> None:
        stages: list[Progress] = []
        extraction = extract(ingestion._replace(progress=stages.append), sources, settings)
        (folder / "extraction").write_bytes(pickle.dumps((extraction, stages)))

    made = made_once(factory, f"extracted-{digest_of((digests, how))}", make)
    extraction, stages = pickle.loads((made / "extraction").read_bytes())  # noqa: S301 - our own
    for stage in stages:
        ingestion.progress(stage)
    return extraction


def learn_once(factory: pytest.TempPathFactory, corpus: Corpus, **options: object) -> SceneModel:
    """Learn a scene as `learn_scene` does; most pages learn the same footage in the same way."""
    how = {name: it for name, it in options.items() if name not in ("progress", "workers")}
    how["min_words"] = float(
        how["min_words"]
    )  # commands give a float, functions what they are given
    with tempfile.NamedTemporaryFile() as file:
        corpus.save(file.name)
        key = hashlib.sha256(Path(file.name).read_bytes()).hexdigest(), sorted(how.items())
    make = partial(_learn, corpus, options)
    return SceneModel.load(made_once(factory, f"learnt-{digest_of(key)}", make) / "model")


def _learn(corpus: Corpus, options: dict[str, object], folder: Path) -> None:
    learn_scene(corpus, **options).save(folder / "model")


def digest_of(key: object) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(blocks_of(page))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_code_of_a_page_runs(page, workplace):
    space: dict[str, object] = {"__name__": "page"}
    blocks = list(blocks_of(page))
    if page == START:
        blocks.remove(rendering_block())  # the footage was made by running it
    for block in blocks:
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.language == "python":
            # Line numbers of a traceback are then those of the page.
            exec(compile("\n" * block.line + block.code, where, "exec"), space)  # noqa: S102
            continue
        for command in commands_of(block.code):
            run = executed(command.line, workplace)
            said = run.stderr + run.stdout
            assert run.returncode == 0, f"{where}: {command.line}\n{said}"
            if command.output:
                assert matches(command.output, said), f"{where}: {command.line}\n{said}"


def executed(line: str, folder: Path) -> "Done | subprocess.CompletedProcess[str]":
    """Run a line of a shell: what is one command of ours, or a loop of them, here."""
    words = shlex.split(line.replace("\\\n", " "))
    if words[0] == "habitus" and not set("|<>;&$*") & set(line):
        return habitus(*words[1:], cwd=folder)
    if words[0] == "for" and not set("|<>&") & set(line):
        runs = [habitus(*given, cwd=folder) for given in arguments_within(line)]
        returncodes, *said = zip(*runs, strict=True)
        return Done(max(returncodes), *map("".join, said))
    return in_shell(line)


def arguments_within(loop: str) -> list[list[str]]:
    """Return what a loop gives to each of our commands."""
    told = in_shell(f'habitus() {{ printf "%s\\0" "$@"; echo; }}\n{loop}')
    return [given.split("\0")[:-1] for given in told.stdout.splitlines()]


def in_shell(line: str) -> "subprocess.CompletedProcess[str]":
    shell = ["bash", "-c", line]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


def test_console_blocks_are_split_into_commands_and_outputs():
    code = "$ one\nout\n$ two \\\n> three\n"
    assert commands_of(code) == [Command("one", "out\n"), Command("two \\\nthree", "")]


def test_outputs_are_compared_by_their_words():
    assert matches("a  b ... d\n", "a b\nc c\n d")
    assert not matches("a b", "a c")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_runs_or_says_why_not(page):
    """A fence that the pattern misses would silently not run."""
    text = page.read_text()
    fences = len(re.findall(r"^ *```(?:python|console)\b", text, re.MULTILINE))
    found = [m for m in BLOCK.finditer(text) if m["language"] in ("python", "console")]
    assert len(found) == fences
    assert not re.search(r"^ *```(?:py|sh|bash|shell|pycon)\b", text, re.MULTILINE)


def resolved(name: str) -> object:
    """Return what a dotted name of habitus stands for."""
    module, parts = name, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            parts.insert(0, last)
    for part in parts:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_of_the_library_exists(page):
    text = page.read_text()
    for name in re.findall(r"(?:`|^::: )(habitus\.[A-Za-z_][\w.]*\w)", text, re.MULTILINE):
        if not re.search(r"\.(mp4|model|csv|html|jsonl|md)$", name):
            resolved(name)


def test_the_table_of_equations_names_functions():
    names = re.findall(r"`(habitus\.[\w.]+)`", (DOCS / "concepts/equations.md").read_text())
    assert len(names) > 15
    for name in names:
        assert callable(resolved(name)), name


def test_the_table_of_equations_has_every_learning_and_scoring_equation():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "concepts/equations.md").read_text(), re.MULTILINE)
    numbers: set[int] = set()
    for row in rows:
        for first, last in re.findall(r"\((\d+)\)(?:-\((\d+)\))?", row):
            numbers.update(range(int(first), int(last or first) + 1))
    assert set(range(6, 34)) | set(range(38, 44)) <= numbers


def test_the_map_of_the_tree_names_what_is_there():
    text = (ROOT / "docs/project/architecture.md").read_text()
    paths = re.findall(r"`(?:habitus/)?([a-z_]+(?:/[a-z_]+)*)(?:/|\.py)?`", text)
    named = [path for path in paths if "/" in path and not path.startswith("benchmarks")]
    files = [ROOT / "src/habitus" / path for path in named]
    assert len(files) > 100
    assert [file for file in files if not (file.is_dir() or Path(f"{file}.py").exists())] == []


def test_the_command_reference_is_not_stale():
    script = [sys.executable, ROOT / "scripts/command_reference.py", "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_a_root_page_is_short_and_its_links_lead_somewhere(name):
    text = (ROOT / name).read_text()
    assert len(text.splitlines()) < {"README.md": 100, "CONTRIBUTING.md": 80}[name]
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_the_documents_exist(page):
    from habitus.cli import command_for

    app = command_for()
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    known |= {group.typer_instance.info.name for group in app.registered_groups}
    named = set(re.findall(r"(?:^\s*\$ |`)habitus (\w+)", page.read_text(), re.MULTILINE))
    assert named <= known


# Version 0.1's own idiom, which readers had to decode.
RIDDLES = re.compile(
    r"\b(frames|labels|words|nats|samples|alarms|alerts) an? "
    r"(second|frame|word|hour|day|document)\b"
    r"|alarms of nothing|so many|times in 10|times out of ten|made anomal|\bgive or take\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_documents_use_plain_terms(page):
    assert RIDDLES.findall(page.read_text()) == []


def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(
        build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    fetched = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?https?:|<link[^>]*href=\"?https?:")
    for page in tmp_path.rglob("*.html"):
        assert not fetched.search(page.read_text()), page


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_text_is_long(page):
    """Tables, what commands print and measured figures apart."""
    apart = r"^( *)```.*?^\1```|^<!-- figures\b.*?^<!-- /figures -->"
    text = re.sub(apart, "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
    assert [line for line in lines if len(line) > 160] == []
