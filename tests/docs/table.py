"""Who runs which block of the documents: every block is in one of these tables, or `test_blocks.py` fails."""

IN_CHECKOUT: dict[str, dict[str, str]] = {
    "README.md: Vacancy": {},
    "README.md: Try it": {},
    "CONTRIBUTING.md: Tests": {
        ".venv/bin/pytest": ".venv/bin/pytest --collect-only -q",
        "seed=N": "seed=1 tests/test_columns.py",
    },
    'docs/ledger.md: What did "1" mean?': {"/var/log/kubernetes/audit.log": "audit.log"},
    "docs/pipelines.md: Full, or for ever?": {},
    "docs/truth.md: Repeating it": {"stories 20000": "stories 20"},
}
"""Run over the example, with what stands in the place of other words."""

IN_CLUSTER = (
    "README.md: Ask about your own cluster (2)",
    "README.md: Ask about your own cluster (3)",
    "README.md: Ask about your own cluster (4)",
    "docs/reference.md: Advice",
    "docs/install.md: Before you enforce",
    "docs/install.md: Before you enforce (2)",
    "docs/install.md: Modes",
    "docs/install.md: Rights",
    "docs/install.md: Publish the page",
    "docs/install.md: A server outside the cluster",
    "docs/install.md: A server outside the cluster (2)",
    "docs/install.md: Upgrade",
    "docs/certificates.md: What goes wrong",
    "docs/certificates.md: What goes wrong (2)",
    "docs/install.md: Remove",
    "README.md: Install it",
    "README.md: Ask about your own cluster",
    "docs/operate.md: VacancyClassLow",
    "docs/operate.md: VacancyClassFull",
    "docs/operate.md: VacancyRefusalsJump",
    "docs/operate.md: VacancyFailOpen",
    "docs/operate.md: VacancyDriverSilent",
    "docs/install.md: Remove (2)",
    "docs/install.md: Remove (3)",
    "charts/vacancy/README.md: Vacancy",
)
"""Run one after the other in a real cluster, as its administrator."""

ELSEWHERE = {
    "docs/ledger.md: What it shows": "docs/test_checkout.py::test_the_ledger_is_shown_as_it_is_printed",
    "docs/ledger.md: The audit policy": "test_docs.py::test_the_audit_policy_is_the_one_of_the_example",
    "docs/image.md: The same twice": "image/test_image_page.py::test_what_is_compared_is_printed",
    "docs/pipelines.md: GitHub Actions": "test_pipelines.py::test_the_job_on_github_goes_on_or_fails_by_the_exit_code",
    "docs/pipelines.md: GitLab": "test_pipelines.py::test_the_job_on_gitlab_passes_warns_or_fails_by_the_exit_code",
    "docs/pipelines.md: Tekton": "test_pipelines.py::test_the_task_in_tekton_has_the_verdict_for_its_result",
    "docs/pipelines.md: Tekton (2)": "docs/test_checkout.py::test_a_task_that_waits_for_a_device_knows_the_verdicts",
    "docs/pipelines.md: JupyterHub": "test_pipelines.py::test_jupyterhub_marks_what_is_full_and_nothing_else",
}
"""Run, or compared, by a test that has more to say about it; its file is below `tests`."""

NOT_RUN = {
    "ARCHITECTURE.md: Architecture": "a drawing",
    "make test": "it is what runs this",
    "make truth": "takes an hour",
    "make screenshots": "writes docs/img, which tests/browser/test_screenshots.py compares",
    "make bench": "takes minutes, and its figures are for a machine that does nothing else",
    "make loadtest": "takes hours on a machine that does nothing else; tests/loadtest runs a part of it",
    "make image": "fetches its base from a registry; tests/image runs the script on a base of its own",
    "IMAGE=registry.example.com/vacancy:0.1.0 SOURCE=https://git.example.com/vacancy make image": "the same",
    "buildah push registry.example.com/vacancy:0.1.0": "there is no registry; tests/image pushes into a folder",
    "IMAGE=registry.example.com/vacancy:0.1.0 make image && buildah push registry.example.com/vacancy:0.1.0": "both",
    "kubectl port-forward --namespace vacancy deployment/vacancy 8080 & sleep 3; "
    "curl 'http://localhost:8080/readyz?verbose'; kill $!": "asks a kubelet; that of the tests has no ear",
    "kubectl logs --namespace kube-system -l component=kube-apiserver --tail=-1 --since=1h | "
    "grep 'failed calling webhook.*gpu-vacancy.dev'": "the API server of the tests runs in no pod",
}
"""Blocks and single commands that nothing runs, and why not."""
