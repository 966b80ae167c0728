"""The resolver of the test of the house, on small crates made up for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import modules
import pytest
import rust_items
from modules import Crate
from rust_tokens import tokens

Written = Callable[..., Crate]


@pytest.fixture
def crate(tmp_path: Path) -> Written:
    """Writes a crate: `crate(lib="mod a;", a="…", a__b="…")`, where two underscores stand for a folder."""

    def written(**files: str) -> Crate:
        for name, text in files.items():
            path = tmp_path / "src" / f"{name.replace('__', '/')}.rs"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Crate(tmp_path)

    return written


def edges(crate: Crate) -> dict[tuple[str, str], set[str]]:
    return {pair: set(names) for pair, names in crate.uses.items()}


def test_a_use_is_followed_through_braces_renames_and_relative_paths(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b;",
        a="mod c; pub struct A; pub fn f() {}",
        a__c="use crate::{b::{self, B as Other}, a}; use super::{super::b::Kind::{One, Two}, f}; struct C(b::D, a::A);",
        b="pub struct B; pub struct D; pub enum Kind { One, Two }",
    )
    assert edges(found) == {("a/c.rs", "b.rs"): {"B", "D", "Kind"}, ("a/c.rs", "a.rs"): {"A", "f"}}


def test_a_path_in_the_code_is_a_use_and_one_in_words_is_none(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b;",
        a="""
        //! See crate::b::Told.
        /* crate::b::Told /* and */ super::b::Told */
        fn f<'a>(x: &'a str) -> char { let _ = (r#"crate::b::Told"#, "crate::b::Told \\" b"); '"' }
        fn g() -> crate::b::Said { super::b::called::<u8>(1..2) }
        """,
        b="pub struct Told; pub struct Said; pub fn called<T>() {}",
    )
    assert edges(found) == {("a.rs", "b.rs"): {"Said", "called"}}


def test_a_re_export_is_followed_and_is_no_use_itself(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b; pub use b::Thing; pub(crate) use b::Thing as Renamed;",
        a="use crate::Thing; fn f() -> crate::Renamed {}",
        b="mod c; pub use c::Thing;",
        b__c="pub struct Thing;",
    )
    assert edges(found) == {("a.rs", "b/c.rs"): {"Thing"}}


def test_a_re_export_that_the_file_uses_too_is_a_use(crate: Written) -> None:
    found = crate(lib="mod a; pub use a::A; fn f() -> A {}", a="pub struct A;")
    assert edges(found) == {("lib.rs", "a.rs"): {"A"}}


def test_of_a_glob_only_the_names_that_occur_are_used(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b; pub struct Root;",
        a="use super::*; use crate::b::*; fn f(x: First) { x.second() }",
        b="pub struct First; pub fn second() {} pub struct Third;",
    )
    assert edges(found) == {("a.rs", "b.rs"): {"First"}}


def test_tests_are_not_read(crate: Written) -> None:
    found = crate(
        lib="""
        mod a; mod b;
        #[cfg(test)] mod c;
        """,
        a="""
        #[cfg(test)] use crate::b::B;
        #[cfg(all(test, unix))] const N: [u8; 2] = { crate::b::N };
        struct S { #[cfg(test)] x: crate::b::B, y: u8 }
        #[cfg(not(test))] fn kept() -> crate::b::Kept {}
        #[cfg(test)]
        mod tests { use super::*; use crate::b::B; }
        """,
        b="pub struct B; pub struct Kept; pub const N: [u8; 2] = [0; 2];",
    )
    assert edges(found) == {("a.rs", "b.rs"): {"Kept"}}
    assert found.files == ["a.rs", "b.rs", "lib.rs"]


def test_modules_inside_a_file_belong_to_it(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b;",
        a="mod bit { pub const X: u8 = 1; pub fn f() -> super::super::b::B { super::g() } } fn g() -> u8 { bit::X }",
        b="use crate::a::bit::X; pub struct B;",
    )
    assert edges(found) == {("a.rs", "b.rs"): {"B"}, ("b.rs", "a.rs"): {"X"}}


def test_macros_are_items_and_what_they_make_is_in_the_file_that_calls_them(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b; mod c;",
        a="""
        macro_rules! make { ($n:ident) => { pub fn $n() { super::never(); $crate::c::helped() } } }
        pub(crate) use make;
        """,
        b="use crate::a::make; make!(made);",
        c="pub fn helped() {} fn f() { crate::b::made() }",
    )
    assert edges(found) == {
        ("a.rs", "c.rs"): {"helped"},
        ("b.rs", "a.rs"): {"make"},
        ("c.rs", "b.rs"): {"made"},
    }


def test_a_module_and_a_function_may_share_a_name(crate: Written) -> None:
    found = crate(
        lib="mod look; mod door; pub use door::look;",
        look="pub struct Look;",
        door="use crate::look::Look; pub fn look() -> Look {}",
    )
    assert edges(found) == {("door.rs", "look.rs"): {"Look"}}


def test_what_comes_from_outside_is_nobodys(crate: Written) -> None:
    found = crate(
        lib="mod log; mod a;",
        log="use std::fmt; pub struct Log;",
        a="use log::Level; use std::io::{self, Read}; use serde::*; fn f<T: Read>(x: T::Item) -> io::Result<u8> {}",
    )
    assert edges(found) == {}


@pytest.mark.parametrize(
    ("parent", "child", "circle"),
    [
        ("mod one; pub trait Policy {} fn all() -> one::One {}", "use super::Policy; pub struct One;", False),
        ("mod one; pub struct Room; fn all() -> one::One {}", "use super::Room; pub struct One;", True),
    ],
    ids=["an interface", "a type"],
)
def test_a_child_may_take_its_folders_interface(crate: Written, parent: str, child: str, circle: bool) -> None:  # noqa: FBT001
    found = crate(lib="mod policy;", policy__mod=parent, policy__one=child)
    assert bool(modules.circles(found.uses)) is circle


def test_circles_are_the_components_and_say_why(crate: Written) -> None:
    found = crate(
        lib="mod a; mod b; mod c; mod d;",
        a="use crate::b::B; pub struct A;",
        b="use crate::c::C; pub struct B;",
        c="use crate::a::A;\nuse crate::d::D; pub struct C;",
        d="pub struct D;",
    )
    (circle,) = modules.circles(found.uses)
    assert circle == {"a.rs", "b.rs", "c.rs"}
    assert modules.told(modules.inside(found.uses, circle)) == [
        "  a.rs:1 uses B of b.rs",
        "  b.rs:1 uses C of c.rs",
        "  c.rs:1 uses A of a.rs",
    ]


def test_ways_to_the_outside_are_seen_however_they_are_written(crate: Written) -> None:
    found = crate(lib="use std::{fmt, fs::{self, File}}; use std::time as t; fn f() { std::env::args() }")
    assert {path[:2] for path, _ in found.outward() if path[0] == "std"} == {
        ("std", "fmt"),
        ("std", "fs"),
        ("std", "time"),
        ("std", "env"),
    }


def test_functions_are_counted_from_their_name_to_their_brace() -> None:
    source = """
    trait T { fn without_body(&self) -> [u8; 4]; fn short(&self) {} }
    impl X {
        pub const fn long(
            a: fn(u8) -> u8,
        ) -> u8 {
            let inner = |x| { x };
            a(inner(1))
        }
    }
    #[cfg(test)]
    mod tests { fn not_counted() {} }
    """
    assert rust_items.read(source).functions == [("short", 1), ("long", 6)]


def test_tokens_know_their_lines() -> None:
    found = tokens('"a\nb" x /* \n */ r#type 1.0e3 0..n')
    assert [(token.text, token.line) for token in found] == [("x", 2), ("type", 3), (".", 3), (".", 3), ("n", 3)]
