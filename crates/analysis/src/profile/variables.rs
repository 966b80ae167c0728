//! Which local variables name objects.
//!
//! The rule in one sentence: **an object has the name of the innermost variable on its way out of the allocator that is
//! telling, which is one of whose name none holds another object of the recording; where the way goes on past the last
//! variable that is seen, or none is telling, the object keeps the name that it has without.**
//!
//! So the variable of a function that allocates for several callers names none of what it hands out, and `buffer` none
//! of the buffers of two functions, which say more by their own names. A variable that is a structure tells by its
//! member where it holds several objects: `mesh.cells`. Where one function assigns to one variable at several lines, the
//! line tells: `grid@cells.c:12`. No name that is made here is another object's.

use std::collections::{BTreeMap, BTreeSet};

/// A local variable that held an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// What it is called: the variable, and with its member if it is a structure.
    pub(crate) names: Vec<String>,
    pub(crate) function: String,
    /// Statement of its function that brought the object, `file:line`.
    pub(crate) line: Option<String>,
}

/// What an object may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its name if no local variable gives one.
    pub(crate) otherwise: String,
    /// Variables that held it on its way out of the allocator, innermost first, those that only point to it last.
    pub(crate) holders: Vec<Holder>,
    /// Whether the outermost of them kept it.
    pub(crate) is_kept: bool,
}

impl Claim {
    /// Of an object that no local variable held.
    pub(crate) fn of(name: String) -> Self {
        Self { otherwise: name, holders: Vec::new(), is_kept: false }
    }
}

/// What an object is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) name: String,
    /// Statement that assigns it to the variable that it is named after.
    pub(crate) line: Option<String>,
}

/// What each object is called, in the order of the claims.
pub(crate) fn names(claims: &[Claim]) -> Vec<Name> {
    let holdings = Holdings::of(claims);
    let otherwise = |claim: &Claim| Name { name: claim.otherwise.clone(), line: None };
    claims.iter().map(|claim| holdings.telling(claim).unwrap_or_else(|| otherwise(claim))).collect()
}

/// All variables of a name.
#[derive(Default)]
struct Holding<'c> {
    objects: BTreeSet<usize>,
    functions: BTreeSet<&'c str>,
    by_line: BTreeMap<&'c str, BTreeSet<usize>>,
}

impl<'c> Holding<'c> {
    fn insert(&mut self, object: usize, holder: &'c Holder) {
        self.objects.insert(object);
        self.functions.insert(&holder.function);
        if let Some(line) = &holder.line {
            self.by_line.entry(line).or_default().insert(object);
        }
    }
}

/// Who holds what.
struct Holdings<'c> {
    by_name: BTreeMap<&'c str, Holding<'c>>,
    /// Names that are taken without local variables.
    others: BTreeSet<&'c str>,
}

impl<'c> Holdings<'c> {
    fn of(claims: &'c [Claim]) -> Self {
        let others = claims.iter().map(|claim| claim.otherwise.as_str()).collect();
        let mut by_name: BTreeMap<&str, Holding> = BTreeMap::new();
        for (object, claim) in claims.iter().enumerate() {
            for holder in &claim.holders {
                for name in &holder.names {
                    by_name.entry(name).or_default().insert(object, holder);
                }
            }
        }
        Self { by_name, others }
    }

    /// The name that the variables give an object.
    fn telling(&self, claim: &Claim) -> Option<Name> {
        let free = |name: &String| !self.others.contains(name.as_str());
        let mut innermost_first = claim.holders.iter().filter(|_| claim.is_kept);
        innermost_first.find_map(|holder| {
            let name = self.shortest(holder).filter(free)?;
            Some(Name { name, line: holder.line.clone() })
        })
    }

    fn shortest(&self, holder: &Holder) -> Option<String> {
        let is_telling = |name: &&String| self.by_name[name.as_str()].objects.len() == 1;
        holder.names.iter().find(is_telling).cloned().or_else(|| self.with_line(holder))
    }

    fn with_line(&self, holder: &Holder) -> Option<String> {
        let (name, line) = (holder.names.last()?, holder.line.as_deref()?);
        let Holding { functions, by_line, .. } = &self.by_name[name.as_str()];
        (functions.len() == 1 && by_line[line].len() == 1).then(|| format!("{name}@{line}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(claims: &[Claim]) -> Vec<String> {
        super::names(claims).into_iter().map(|name| name.name).collect()
    }

    fn holder((variable, function, line): (&str, &str, &str)) -> Holder {
        Holder { names: vec![variable.to_owned()], function: function.to_owned(), line: Some(line.to_owned()) }
    }

    fn claim(otherwise: &str, holders: &[(&str, &str, &str)]) -> Claim {
        let holders = holders.iter().map(|one| holder(*one)).collect();
        Claim { otherwise: otherwise.to_owned(), holders, is_kept: true }
    }

    #[test]
    fn the_variable_of_a_function_that_allocates_for_several_names_nothing() {
        let wrapped =
            |variable, line| claim("checked@util.c:3", &[("found", "checked", "util.c:3"), (variable, "main", line)]);
        assert_eq!(names(&[wrapped("a", "main.c:1"), wrapped("b", "main.c:2")]), ["a", "b"]);
        let into_fields = |site| claim(site, &[("memory", site, site), ("data", "heap", "heap.hpp:9")]);
        assert_eq!(names(&[into_fields("alloc_a"), into_fields("alloc_x")]), ["alloc_a", "alloc_x"]);
    }

    #[test]
    fn who_hands_on_to_where_nobody_saw_names_nothing() {
        let handed = Claim { is_kept: false, ..claim("create@grid.c:3", &[("result", "create", "grid.c:3")]) };
        assert_eq!(names(&[handed]), ["create@grid.c:3"]);
    }

    #[test]
    fn the_function_that_makes_an_object_says_more_than_the_one_that_gets_it() {
        let made = |inner, function| claim("f", &[(inner, function, "maker.c:7"), ("made", "main", "main.c:5")]);
        assert_eq!(names(&[made("table", "make_table"), made("list", "make_list")]), ["table", "list"]);
        assert_eq!(names(&[made("table", "make_table")]), ["table"]);
    }

    #[test]
    fn lines_tell_apart_what_one_function_assigns_to_one_variable() {
        let grown = |line| claim("main", &[("grid", "main", line)]);
        assert_eq!(names(&[grown("c.c:1"), grown("c.c:2")]), ["grid@c.c:1", "grid@c.c:2"]);
        let elsewhere = claim("solve@c.c:9", &[("grid", "solve", "c.c:9")]);
        assert_eq!(names(&[grown("c.c:1"), elsewhere]), ["main", "solve@c.c:9"]);
    }

    #[test]
    fn members_tell_apart_what_one_structure_holds() {
        let member = |name: &str| {
            let mut claim = claim("main", &[("mesh", "main", "c.c:1")]);
            claim.holders[0].names.push(name.to_owned());
            claim
        };
        assert_eq!(names(&[member("mesh.cells")]), ["mesh"]);
        assert_eq!(names(&[member("mesh.cells"), member("mesh.faces")]), ["mesh.cells", "mesh.faces"]);
    }

    #[test]
    fn a_name_that_another_object_has_is_not_given() {
        assert_eq!(names(&[claim("main", &[("grid", "main", "c.c:1")]), Claim::of("grid".to_owned())])[0], "main");
    }

    fn some_holder() -> impl Strategy<Value = Holder> {
        let names = proptest::collection::vec(r"[ab](\.[mn])?", 1..3);
        let parts = (names, "[fg]", proptest::option::of("[xy]"));
        parts.prop_map(|(names, function, line)| Holder { names, function, line })
    }

    fn some_claims() -> impl Strategy<Value = Vec<Claim>> {
        let claim = ("[abf]|f@x|a@x", proptest::collection::vec(some_holder(), 0..3), any::<bool>())
            .prop_map(|(otherwise, holders, is_kept)| Claim { otherwise, holders, is_kept });
        proptest::collection::vec(claim, 0..6)
    }

    proptest! {
        #[test]
        fn no_variable_names_two_objects(claims in some_claims()) {
            let names = names(&claims);
            for (name, claim) in names.iter().zip(&claims) {
                let alike = names.iter().filter(|other| *other == name).count();
                prop_assert!(*name == claim.otherwise || alike == 1, "{name} of {names:?}");
            }
        }

        #[test]
        fn a_name_that_was_one_objects_stays_one_objects(claims in some_claims()) {
            let names = names(&claims);
            for (at, claim) in claims.iter().enumerate() {
                let was_unique = claims.iter().filter(|other| other.otherwise == claim.otherwise).count() == 1;
                prop_assert!(!was_unique || names.iter().filter(|name| **name == names[at]).count() == 1);
            }
        }

        #[test]
        fn a_variable_that_names_an_object_held_it(claims in some_claims()) {
            for (name, claim) in names(&claims).iter().zip(&claims) {
                let held = |holder: &Holder| holder.names.iter().any(|own| name.split('@').next() == Some(own));
                prop_assert!(*name == claim.otherwise || claim.is_kept && claim.holders.iter().any(held));
            }
        }

        #[test]
        fn names_do_not_depend_on_the_order_of_objects(claims in some_claims(), turn in 0_usize..6) {
            let (mut turned, mut expected) = (claims.clone(), names(&claims));
            let turn = turn.min(turned.len());
            turned.rotate_left(turn);
            expected.rotate_left(turn);
            prop_assert_eq!(names(&turned), expected);
        }
    }
}
