"""``tierloom doctor``: what works on this machine, and what to do about the rest."""

from __future__ import annotations

import click

from tierloom.commands import options, say


@click.command(name="doctor", epilog=options.examples("tierloom doctor", "tierloom doctor --json"))
@click.option(
    "--restore-weights",
    is_flag=True,
    help="Only put back the host's interleave weights that a killed `run --set-host-weights` left (root).",
)
@options.as_json
@click.pass_context
def verb(ctx: click.Context, restore_weights: bool, as_json: bool) -> None:
    """Try what Tierloom needs on this machine, and say what to do about what is missing.

    Programs are sampled and placed as `profile` and `run` would, which takes some seconds. Ends with 1 when
    nothing can be profiled or planned here; what else is missing costs the verbs that are named beside it.
    """
    if restore_weights:
        from tierloom import plan_runner

        restored = plan_runner.restore_host_weights()
        if as_json:
            say.document("restored-weights", {"restored": restored})
        else:
            say.tell("the host's interleave weights are as they were" if restored else "no run left any")
        return
    from tierloom.doctor import Checkup, examine
    from tierloom.report.tables import doctor

    with say.progress("trying"):
        found = Checkup(tuple(examine()))
    if as_json:
        say.document("checkup", found.data)
    else:
        say.show(doctor.findings(found.findings))
    if not found.ready:
        ctx.exit(1)
    say.then("tierloom demo")
