"""A learner's own copy of the book: chapters are added, and nothing of the learner's is overwritten."""

import hashlib
import json
import os
import shutil
from difflib import get_close_matches
from pathlib import Path

from labkit import places
from labkit.exercises.contents import NOTEBOOK_GLOB, slug_of
from labkit.exercises.progress import LEDGER  # chapter's slug -> digest of the chapter as it was last handed out


def copy_chapters(workspace: Path, notebooks: Path | None = None) -> list[str]:
    """Copy the chapters that the workspace does not have yet; say in sentences what is new.

    A chapter that has changed since it was handed out replaces the copy only if the learner has not
    changed it; otherwise it is added under a new name. A copy keeps its chapter if the chapter's number changes.
    """
    workspace.mkdir(parents=True, exist_ok=True)
    ledger_path = workspace / LEDGER
    ledger = json.loads(ledger_path.read_text(encoding="utf-8")) if ledger_path.exists() else {}
    # Ledgers of earlier editions have file names as keys; `slug_of` leaves a slug as it is.
    ledger = {slug_of(name.removesuffix(".ipynb")): digest for name, digest in ledger.items()}
    news = []
    for chapter in sorted((notebooks or places.folder("notebooks")).glob(NOTEBOOK_GLOB)):
        slug, latest = slug_of(chapter.stem), _digest(chapter)
        target = workspace / chapter.name
        copies = [target] if target.exists() else sorted(workspace.glob(f"[0-9][0-9]-{slug}.ipynb"))
        learners_copy = copies[0] if copies else None
        if learners_copy and latest in (ledger.get(slug), _digest(learners_copy)):
            ledger[slug] = latest
            continue
        if learners_copy is None:
            news.append(f"New: {chapter.name}")
        elif _digest(learners_copy) == ledger.get(slug):
            learners_copy.unlink()
            before = f"was {learners_copy.name} and " if learners_copy != target else ""
            news.append(f"Updated: {chapter.name}, which {before}you had not changed")
        else:
            target = target if learners_copy != target else _free_name(workspace, chapter)
            news.append(f"{learners_copy.name} has a newer edition; yours is untouched, the new one is {target.name}")
        shutil.copyfile(chapter, target)
        ledger[slug] = latest
    ledger_path.write_text(json.dumps(ledger, indent=1) + "\n", encoding="utf-8")
    return news


def open_lab(workspace: Path, arguments: tuple[str, ...] = ()):
    """Copy the chapters, say what is new, and serve JupyterLab until it is stopped."""
    for line in copy_chapters(workspace):
        print(line)
    print(f"Your copy of the book: {workspace.resolve()}")
    serve(workspace, arguments)


def serve(folder: Path, arguments: tuple[str, ...] = ()):
    """Serve JupyterLab in a folder of chapters until it is stopped; it opens the first."""
    from jupyterlab.labapp import main

    os.environ["JUPYTER_CONFIG_PATH"] = _config_path()
    chapters = sorted(path.name for path in folder.glob(NOTEBOOK_GLOB))
    first = f"/tree/{chapters[0]}" if chapters else ""
    root = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []  # as in a container
    options = [f"--ServerApp.root_dir={folder.resolve()}", f"--LabApp.default_url=/lab{first}", *root]
    main([*options, *arguments])


def describe_unknown_option(arguments: tuple[str, ...]) -> str:
    """Return a sentence about the first option that JupyterLab does not have; "" if it has them all."""
    import jupyterlab.labapp  # before the server's, so that a missing JupyterLab is what an error names
    from jupyter_server.serverapp import aliases, flags

    lab = jupyterlab.labapp.LabApp
    known = {"help-all", "version", *flags, *aliases, *lab.flags, *lab.aliases}
    options = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    unknown = [option for option in options if "." not in option and option.removeprefix("--") not in known]
    if not unknown:
        return ""
    nearest = get_close_matches(unknown[0], [f"--{name}" for name in known], n=1)
    meant = f"did you mean {nearest[0]}? " if nearest else ""
    return f"JupyterLab has no option {unknown[0]}; {meant}`lab --help-all` lists its options"


def _config_path() -> str:
    """Return configuration paths that turn off JupyterLab's news prompt, before the learner's own."""
    ours = str(Path(__file__).parent / "jupyter")
    return os.pathsep.join(filter(None, (ours, os.environ.get("JUPYTER_CONFIG_PATH"))))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _free_name(workspace: Path, chapter: Path) -> Path:
    number = 2
    while (name := workspace / f"{chapter.stem} ({number}){chapter.suffix}").exists():
        number += 1
    return name
