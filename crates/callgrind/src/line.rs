//! One line of a file: what it says, with names and positions still compressed.

use crate::error::Flaw;

/// A line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line<'a> {
    /// `ob=`: the lines that follow are of this file of code.
    Object(Name<'a>),
    /// `cob=`: the file of code that is called; it may give a name its number.
    Called(Name<'a>),
    /// `calls=`, `jump=`, `jcnd=`: the line that follows holds no costs of its own.
    Transfer,
    /// Positions and costs.
    Costs(Vec<&'a str>),
    /// A header.
    Header(&'a str, &'a str),
    /// Comments, and names of functions and source files.
    Nothing,
}

impl<'a> Line<'a> {
    pub(crate) fn of(text: &'a str) -> Result<Self, Flaw> {
        let text = text.trim_ascii();
        if text.is_empty() || text.starts_with('#') {
            return Ok(Self::Nothing);
        }
        if text.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return Ok(Self::Costs(text.split_ascii_whitespace().collect()));
        }
        let (key, separator, value) = keyed(text).ok_or_else(|| unknown(text))?;
        match (key, separator) {
            ("ob", '=') => Ok(Self::Object(Name::of(value)?)),
            ("cob", '=') => Ok(Self::Called(Name::of(value)?)),
            ("calls" | "jump" | "jcnd", '=') => Ok(Self::Transfer),
            ("fl" | "fi" | "fe" | "fn" | "cfi" | "cfl" | "cfn" | "jfi" | "jfl" | "jfn", '=') => Ok(Self::Nothing),
            (_, ':') => Ok(Self::Header(key, value)),
            _ => Err(unknown(text)),
        }
    }
}

/// The word in front of the first `=` or `:`, and what stands behind it.
fn keyed(text: &str) -> Option<(&str, char, &str)> {
    let at = text.find(['=', ':'])?;
    let (key, rest) = text.split_at(at);
    let is_word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase());
    let separator = rest.chars().next()?;
    is_word.then(|| (key, separator, rest[1..].trim_ascii()))
}

pub(crate) fn unknown(text: &str) -> Flaw {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    Flaw::other(format!("`{}` is no line of callgrind's", shown.escape_debug()))
}

/// A name: its number stands for it later on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Name<'a> {
    pub(crate) number: Option<u64>,
    /// Empty where the number alone stands there.
    pub(crate) text: &'a str,
}

impl<'a> Name<'a> {
    fn of(value: &'a str) -> Result<Self, Flaw> {
        let Some((number, text)) = value.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            return Ok(Self { number: None, text: value });
        };
        let number = number.parse().map_err(|_| unknown(value))?;
        Ok(Self { number: Some(number), text: text.trim_ascii() })
    }
}

/// A position: absolute, or against the one before.
pub(crate) fn position(text: &str, before: u64) -> Result<u64, Flaw> {
    let moved = match text.split_at_checked(1) {
        Some(("*", "")) => Some(before),
        Some(("+", rest)) => number(rest).and_then(|by| before.checked_add(by)),
        Some(("-", rest)) => {
            let by = number(rest).ok_or_else(|| unknown(text))?;
            let back = before.checked_sub(by);
            return back.ok_or_else(|| Flaw::other(format!("`{text}` leads before the first address")));
        }
        _ => number(text),
    };
    moved.ok_or_else(|| unknown(text))
}

/// A number, decimal or hexadecimal.
pub(crate) fn number(text: &str) -> Option<u64> {
    // A sign in front is no part of a number here.
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit());
    let parsed = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16),
        Some(_) => return None,
        None => text.parse(),
    };
    parsed.ok().filter(|_| is_plain)
}
