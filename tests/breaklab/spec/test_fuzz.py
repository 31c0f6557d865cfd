"""Whatever bytes a spec or a manifest holds: an answer or a SpecError, never anything else."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breaklab.errors import SpecError
from breaklab.spec.breaks import INJECT_KEYS, RUN_KEYS, SPEC_KEYS, load_spec
from breaklab.spec.lab import LAB_KEYS, load_lab

KEYS = [*SPEC_KEYS, *INJECT_KEYS, *RUN_KEYS, *LAB_KEYS, "en", "es", "red", "runs", "R1"]
SCALARS = ["1", "35-01", "true", "~", "''", '"a"', "a: b", "*a", "&a b", "!!int 3", ".inf", "@x"]
QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

values = st.recursive(
    st.sampled_from(SCALARS) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{k}: {v}" for k, v in items.items()) + "}"
        )
    ),
    max_leaves=6,
)
documents = st.lists(st.tuples(st.sampled_from(KEYS), values), max_size=12).map(
    lambda items: "\n".join(f"{key}: {value}" for key, value in items)
)


def read(load, folder, data):
    path = folder / "x.yaml"
    path.write_bytes(data)
    with contextlib.suppress(SpecError):
        load(path)


@QUICK
@given(data=st.binary(max_size=200))
def test_any_bytes(data, tmp_path):
    read(load_spec, tmp_path, data)
    read(load_lab, tmp_path, data)


@QUICK
@given(text=documents)
def test_any_keys_with_any_values(text, tmp_path):
    data = text.encode(errors="surrogatepass")
    read(load_spec, tmp_path, b"format: 1\n" + data)
    read(load_lab, tmp_path, b"format: 1\n" + data)


@QUICK
@given(text=st.text(alphabet=st.sampled_from(list("abc:-[]{}&*!|>'\"%@`#, \n\t?~0")), max_size=80))
def test_any_yaml_like_text(text, tmp_path):
    read(load_spec, tmp_path, text.encode())
