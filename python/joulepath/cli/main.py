"""`joulepath`: the group of verbs, and the one place where errors become sentences and exit codes."""

import contextlib
import sys

import click

from joulepath._core import PlanError, TraceFileError, __version__
from joulepath.cli.link import link
from joulepath.cli.recommend import recommend
from joulepath.cli.report import report
from joulepath.cli.simulate import simulate
from joulepath.cli.workload import workload
from joulepath.plan import PlanFileError
from joulepath.recommend import InfeasibleError
from joulepath.record import RecordError
from joulepath.sweep import Stopped

FAILED, USAGE, PARTIAL = 1, 2, 3


class _Verbs(click.Group):
    """Keeps the verbs in the order in which they are added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="joulepath")
def cli() -> None:
    """Where the joules go when data centres move, store and shrink big data.

    Exit codes: 0 done, 1 failed, 2 bad plan or usage, 3 partial result kept.
    """


for verb in (link, workload, simulate, recommend, report):
    cli.add_command(verb)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code; no traceback ever reaches the user."""
    try:
        result = cli.main(arguments, prog_name="joulepath", standalone_mode=False)
        sys.stdout.flush()
        return int(result or 0)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.Abort:
        _say("stopped")
        return FAILED
    except PlanFileError as error:
        _say(str(error))
        return USAGE
    except PlanError as error:
        _say(": ".join(str(a) for a in error.args if a))
        return USAGE
    except Stopped as error:
        _say(str(error))
        return PARTIAL
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; there is nobody to tell.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 0
    except (TraceFileError, RecordError, InfeasibleError) as error:
        _say(str(error))
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror or error}")
        return FAILED
    except KeyboardInterrupt:
        _say("stopped")
        return FAILED


def _say(sentence: str) -> None:
    click.echo(f"joulepath: {sentence}", err=True)
