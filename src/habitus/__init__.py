"""habitus learns what is habitual in a fixed camera's view, and shows what is not.

One function for each command (`extract`, `learn`, `detect`, `accept`, `watch`, `report`,
`evaluate`, `compare`, `tune`, `show`, `demo`, `serve`, `learn_archive`, `detect_archive`,
`report_archive`), the values that they take, and those that people work with: these are in
`__all__` and `dir`. Types of further results, and what commands need beside, are there by name too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from habitus.version import __version__ as __version__

if TYPE_CHECKING:
    from habitus.corpus import Corpus, Direction, ShardedCorpus, Vocabulary
    from habitus.errors import (
        DegenerateWarning,
        FileError,
        HabitusError,
        InvalidInputError,
        LearningError,
        VideoError,
        WorkerError,
    )
    from habitus.evaluation.assessment import Assessment
    from habitus.evaluation.frames import FrameFigures, PixelFigures
    from habitus.evaluation.label_files import read_labels
    from habitus.evaluation.labels import Label
    from habitus.evaluation.matching import FoundEvents
    from habitus.evaluation.metrics import Estimate
    from habitus.ingest.chunks import Extraction
    from habitus.ingest.clips import DocumentSettings
    from habitus.ingest.live import Notice
    from habitus.lab.comparison.findings import Comparison
    from habitus.lab.comparison.results_page import comparison_table
    from habitus.lab.demonstration import Demonstration
    from habitus.lab.tuning.advice import Hyperparameters, Tuning, recall_in_words
    from habitus.lab.tuning.recall import FoundShare, RecallEstimate
    from habitus.lab.tuning.selection import Choice
    from habitus.model import (
        Assignments,
        DirichletPosterior,
        MarkovClusteringTopicModel,
        Parameters,
        Prior,
        generate,
    )
    from habitus.pipeline import (
        accept,
        compare,
        demo,
        detect,
        evaluate,
        extract,
        learn,
        parse_duration,
        report,
        show,
        tune,
    )
    from habitus.progress import Progress, ProgressCallback, when_compiling, when_connected
    from habitus.reporting.summaries import (
        CorpusSummary,
        Likely,
        ModelSummary,
        summarise_corpus,
        summarise_model,
    )
    from habitus.scene import (
        Acceptance,
        Calibration,
        CalibrationSettings,
        Detection,
        Detector,
        Event,
        ExpectedAlarms,
        Fleet,
        Judgement,
        SceneModel,
        calibrate,
    )
    from habitus.scene.camera_monitor import CameraFault
    from habitus.scene.events import clock
    from habitus.settings import AlertSettings, LearningSettings, ReadingSettings
    from habitus.site.operations import (
        ArchiveLearning,
        detect_archive,
        learn_archive,
        report_archive,
    )
    from habitus.site.overview import ArchiveOverview, CameraOverview
    from habitus.site.shard_judging import ArchiveDetection
    from habitus.site.watching import EventEnded, EventStarted, watch
    from habitus.video.addresses import check_address
    from habitus.video.source import redacted
    from habitus.web.backup import back_up, restore
    from habitus.web.server import serve, set_password

_HOMES = {
    name: f"habitus.{home}"
    for home, names in {
        "corpus": "Corpus Direction ShardedCorpus Vocabulary",
        "errors": "DegenerateWarning FileError HabitusError InvalidInputError LearningError "
        "VideoError WorkerError",
        "evaluation.assessment": "Assessment",
        "evaluation.frames": "FrameFigures PixelFigures",
        "evaluation.label_files": "read_labels",
        "evaluation.labels": "Label",
        "evaluation.matching": "FoundEvents",
        "evaluation.metrics": "Estimate",
        "ingest.chunks": "Extraction",
        "ingest.clips": "DocumentSettings",
        "ingest.live": "Notice",
        "lab.comparison.findings": "Comparison",
        "lab.comparison.results_page": "comparison_table",
        "lab.demonstration": "Demonstration",
        "lab.tuning.advice": "Hyperparameters Tuning recall_in_words",
        "lab.tuning.recall": "FoundShare RecallEstimate",
        "lab.tuning.selection": "Choice",
        "model": "Assignments DirichletPosterior MarkovClusteringTopicModel Parameters "
        "Prior generate",
        "pipeline": "accept compare demo detect evaluate extract learn parse_duration "
        "report show tune",
        "progress": "Progress ProgressCallback when_compiling when_connected",
        "reporting.summaries": "CorpusSummary Likely ModelSummary summarise_corpus summarise_model",
        "scene": "Acceptance Calibration CalibrationSettings Detection Detector Event "
        "ExpectedAlarms "
        "Fleet Judgement SceneModel calibrate",
        "scene.camera_monitor": "CameraFault",
        "scene.events": "clock",
        "settings": "AlertSettings LearningSettings ReadingSettings",
        "site.operations": "ArchiveLearning detect_archive learn_archive report_archive",
        "site.overview": "ArchiveOverview CameraOverview",
        "site.shard_judging": "ArchiveDetection",
        "site.watching": "EventEnded EventStarted watch",
        "video.addresses": "check_address",
        "video.source": "redacted",
        "web.backup": "back_up restore",
        "web.server": "serve set_password",
    }.items()
    for name in names.split()
}
"""Where each name is defined: those of `__all__`, types of further results, what commands need."""

__all__ = [
    "AlertSettings",
    "Assignments",
    "Calibration",
    "CalibrationSettings",
    "CameraFault",
    "Corpus",
    "DegenerateWarning",
    "Detection",
    "Detector",
    "Direction",
    "DirichletPosterior",
    "DocumentSettings",
    "Event",
    "EventEnded",
    "EventStarted",
    "FileError",
    "Fleet",
    "HabitusError",
    "InvalidInputError",
    "Judgement",
    "Label",
    "LearningError",
    "LearningSettings",
    "MarkovClusteringTopicModel",
    "Notice",
    "Parameters",
    "Prior",
    "Progress",
    "ReadingSettings",
    "SceneModel",
    "ShardedCorpus",
    "VideoError",
    "Vocabulary",
    "WorkerError",
    "accept",
    "calibrate",
    "compare",
    "demo",
    "detect",
    "detect_archive",
    "evaluate",
    "extract",
    "generate",
    "learn",
    "learn_archive",
    "read_labels",
    "report",
    "report_archive",
    "serve",
    "show",
    "tune",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import habitus` itself costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'habitus' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
