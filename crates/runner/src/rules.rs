//! A plan in the words of the wire: names become numbers, files and symbols become offsets.
//!
//! What this machine cannot do is known here, before the program starts, and said for each rule.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSymbol};
use tierloom_model::{Action, Frame, Plan, RuleOptions, Selector, Warning};
use tierloom_wire::{
    Law, MAX_NODES, MAX_RULE_FRAMES, Options, Policy, Rule, RuleFrame, RuleWriter, Select, Turn, hash,
};

use tierloom_binary::image::{Image, Wants};

use crate::ablation;

/// Name of the plan's default among the reports.
pub(super) const DEFAULT: &str = "default";
/// Where libraries are beside the folders of `LD_LIBRARY_PATH` and the program's own.
const LIBRARY_FOLDERS: [&str; 5] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/local/lib"];

/// What a plan is compiled for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    /// Nodes of this machine.
    pub(super) nodes: &'a [u32],
    /// Which of them the plan's memories are.
    pub(super) node_of: &'a BTreeMap<String, u32>,
    /// The file that will run.
    pub(super) program: &'a Path,
    /// What is asked for every object, whatever the plan says.
    pub(super) options: RuleOptions,
    /// Weights that the host has, where they were set for this run.
    pub(super) host_weights: Option<&'a BTreeMap<u32, u32>>,
    /// Rules say what to ablate, and not where to place it, within so many mappings of the kernel's.
    pub(super) ablate_within: Option<u64>,
    /// Files that the program has mapped, by name without folder, beside those that it starts with.
    pub(super) mapped: &'a BTreeMap<String, PathBuf>,
}

/// The words, and what they say: position is the rule's number on the wire.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub(super) words: Vec<u64>,
    pub(super) rules: Vec<CompiledRule>,
}

/// One rule; the plan's default is the last.
#[derive(Debug, Clone)]
pub(super) struct CompiledRule {
    /// The object's name in the plan, or `default`.
    pub(super) object: String,
    pub(super) wanted: Wanted,
    pub(super) place: Place,
    options: Options,
    /// Why it cannot be applied here.
    pub(super) left_out: Option<String>,
}

/// What a selector means on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    Stack(Vec<RuleFrame>),
    Static {
        module: u64,
        build: u64,
        offset: u64,
        bytes: u64,
    },
    File(u64),
    SizeAtLeast(u64),
    Everything,
    /// It keeps its number, so that the library's reports name the plan's rules.
    Nothing,
}

impl Wanted {
    fn select(&self) -> Select<'_> {
        match *self {
            Wanted::Stack(ref frames) => Select::Stack(frames),
            Wanted::Static { module, build, offset, bytes } => Select::Static { module, build, offset, bytes },
            Wanted::File(path) => Select::File(path),
            Wanted::SizeAtLeast(bytes) => Select::SizeAtLeast(bytes),
            Wanted::Everything => Select::Everything,
            Wanted::Nothing => Select::Nothing,
        }
    }
}

/// An action with the kernel's node numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    FirstTouch,
    Bind(u64),
    Prefer(u64),
    PreferMany(u64),
    Interleave(u64),
    /// In the order of nodes, as the kernel walks them.
    Weighted(Vec<Turn>),
    /// Nowhere: a window of so many bytes over and over.
    Alias(u64),
}

impl Place {
    fn policy(&self) -> Policy<'_> {
        match self {
            Place::FirstTouch => Policy::FirstTouch,
            Place::Bind(mask) => Policy::Bind(*mask),
            Place::Prefer(mask) => Policy::Prefer(*mask),
            Place::PreferMany(mask) => Policy::PreferMany(*mask),
            Place::Interleave(mask) => Policy::Interleave(*mask),
            Place::Weighted(turns) => Policy::Weighted(turns),
            Place::Alias(window_bytes) => Policy::Alias(*window_bytes),
        }
    }

    /// Share of the pages that each node is asked for; empty where no node is, or several will do.
    pub(super) fn shares(&self) -> BTreeMap<u32, f64> {
        let turns = self.turns();
        let total: u32 = turns.iter().map(|turn| turn.units).sum();
        let mut shares = BTreeMap::new();
        for turn in turns {
            *shares.entry(turn.node).or_default() += f64::from(turn.units) / f64::from(total.max(1));
        }
        shares
    }

    /// How pages are dealt out; empty where no node is asked for, or any of several will do.
    pub(super) fn turns(&self) -> Vec<Turn> {
        match self {
            Place::Weighted(turns) => turns.clone(),
            Place::Interleave(mask) | Place::Prefer(mask) => {
                nodes_of(*mask).map(|node| Turn { node, units: 1 }).collect()
            }
            Place::Bind(mask) | Place::PreferMany(mask) if mask.is_power_of_two() => {
                vec![Turn { node: mask.trailing_zeros(), units: 1 }]
            }
            _ => Vec::new(),
        }
    }

    /// Nodes on which pages may be; 0 = any.
    pub(super) fn mask(&self) -> u64 {
        match self {
            Place::FirstTouch | Place::Alias(_) => 0,
            Place::Bind(mask) | Place::Prefer(mask) | Place::PreferMany(mask) | Place::Interleave(mask) => *mask,
            Place::Weighted(turns) => Law::new(turns, 4096).map_or(0, |law| law.mask()),
        }
    }
}

/// Nodes of a mask, ascending.
pub(super) fn nodes_of(mask: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |node| mask & 1 << node != 0)
}

impl Compiled {
    pub(super) fn new(plan: &Plan, context: &Context) -> Self {
        let mut compiled = Self { words: Vec::new(), rules: Vec::new() };
        for rule in &plan.rules {
            let wanted = find(&rule.select, context);
            let place = match context.ablate_within {
                Some(mappings) => ablation::window_bytes(rule, mappings).map(Place::Alias),
                None => resolve(&rule.place, context),
            };
            compiled.add(&rule.object, wanted, place, rule.options, context);
        }
        let none = RuleOptions::default();
        compiled.add(DEFAULT, Ok(Wanted::Everything), resolve(&plan.default, context), none, context);
        compiled
    }

    fn add(
        &mut self,
        object: &str,
        wanted: Result<Wanted, String>,
        place: Result<Place, String>,
        options: RuleOptions,
        context: &Context,
    ) {
        let (wanted, place, left_out) = match (wanted, place) {
            (Ok(wanted), Ok(place)) => (wanted, place, None),
            (Err(reason), _) | (_, Err(reason)) => (Wanted::Nothing, Place::FirstTouch, Some(reason)),
        };
        let options = wire_options(options, &place, &wanted, context);
        let rule = Rule { select: wanted.select(), policy: place.policy(), options };
        RuleWriter::new(|word| self.words.push(word)).write(&rule);
        self.rules.push(CompiledRule { object: object.to_owned(), wanted, place, options, left_out });
    }
}

fn wire_options(own: RuleOptions, place: &Place, wanted: &Wanted, context: &Context) -> Options {
    let everywhere = context.options;
    // Locking what no rule names would lock the whole program.
    let hold = own.hold || (everywhere.hold && *wanted != Wanted::Everything);
    let by_kernel = match place {
        Place::Weighted(turns) => {
            context.host_weights.is_some_and(|host| turns.iter().all(|turn| host.get(&turn.node) == Some(&turn.units)))
        }
        _ => false,
    };
    let unit = own.unit_bytes.or(everywhere.unit_bytes).unwrap_or(0);
    Options { hold, hint_faults: own.hint_faults.or(everywhere.hint_faults), by_kernel, unit }
}

/// Names of the modules that hold a plan's static arrays.
pub(super) fn modules_of(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.rules.iter().filter_map(|rule| match &rule.select {
        Selector::Symbol(text) => text.split_once(':').map(|(module, _)| module),
        _ => None,
    })
}

impl CompiledRule {
    /// Unit that is asked for, bytes; 0 = none.
    pub(super) fn unit(&self) -> u64 {
        self.options.unit
    }

    /// What is asked for beside the place, and what follows from it.
    pub(super) fn consequences(&self) -> Vec<Warning> {
        let weighted = matches!(self.place, Place::Weighted(_) | Place::Interleave(_));
        let told = [
            (self.options.hold, Warning::ObjectsLocked),
            (self.options.hint_faults == Some(true) && self.place != Place::FirstTouch, Warning::MayMigrate),
            (self.options.hint_faults == Some(true) && weighted, Warning::PopulatedAtOnce),
            (self.options.hint_faults == Some(false) && self.place == Place::FirstTouch, Warning::StayWhereTouched),
        ];
        told.into_iter().filter(|(is, _)| *is).map(|(_, warning)| warning).collect()
    }
}

/// Names of memories as the kernel's numbers.
fn resolve(action: &Action, context: &Context) -> Result<Place, String> {
    let mut turns = Vec::new();
    for (name, units) in action.weights() {
        let node = *context.node_of.get(name).ok_or_else(|| format!("nobody said which node `{name}` is"))?;
        if node as usize >= MAX_NODES || !context.nodes.contains(&node) {
            return Err(format!("node {node} (`{name}`) is not on this machine"));
        }
        turns.push(Turn { node, units });
    }
    turns.sort_by_key(|turn| turn.node);
    turns.dedup_by(|next, turn| {
        let is_same = next.node == turn.node;
        turn.units += if is_same { next.units } else { 0 };
        is_same
    });
    let mask = turns.iter().fold(0, |mask, turn| mask | 1 << turn.node);
    Ok(match action {
        Action::FirstTouch => Place::FirstTouch,
        Action::Bind(_) => Place::Bind(mask),
        Action::Prefer(_) => Place::Prefer(mask),
        Action::PreferMany(_) => Place::PreferMany(mask),
        Action::Interleave(_) => Place::Interleave(mask),
        // Shares of one node are all of it: one policy instead of a stripe for each share.
        Action::Weighted(_) if turns.len() == 1 => Place::Prefer(mask),
        Action::Weighted(_) => Place::Weighted(turns),
    })
}

fn find(select: &Selector, context: &Context) -> Result<Wanted, String> {
    match select {
        Selector::Stack(frames) if frames.len() > MAX_RULE_FRAMES => {
            Err(format!("the stack has more than {MAX_RULE_FRAMES} frames"))
        }
        Selector::Stack(frames) => {
            frames.iter().map(|frame| stack_frame(frame)).collect::<Result<_, _>>().map(Wanted::Stack)
        }
        Selector::Symbol(symbol) => find_symbol(symbol, context),
        Selector::SizeAtLeast(bytes) => Ok(Wanted::SizeAtLeast(*bytes)),
        Selector::File(path) => Ok(Wanted::File(hash(path.as_bytes()))),
        Selector::Name(name) => Err(format!("`{name}` is only a name; profile the program to know its memory")),
    }
}

fn stack_frame(frame: &str) -> Result<RuleFrame, String> {
    let frame: Frame = frame.parse()?;
    let build = if frame.build_id.is_empty() { 0 } else { hash(&bytes_of_hex(&frame.build_id)?) };
    Ok(RuleFrame { module: hash(frame.module.as_bytes()), build, offset: frame.offset })
}

pub(super) fn bytes_of_hex(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{text}` is not a build id");
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(|pair| byte(pair).ok_or_else(wrong)).collect()
}

/// A static array by its symbol, `module:symbol`.
fn find_symbol(text: &str, context: &Context) -> Result<Wanted, String> {
    let (module, symbol) = text.split_once(':').ok_or_else(|| format!("`{text}` is not module:symbol"))?;
    let mapped = context.mapped.get(module).cloned();
    let file = mapped.or_else(|| locate(module, context.program));
    let file = file.ok_or_else(|| format!("there is no file `{module}` where libraries are, and none was loaded"))?;
    let image = Image::read(&file, Wants::Symbols).map_err(|error| format!("{}: {error}", file.display()))?;
    let parsed = object::File::parse(&image).map_err(|error| format!("{}: {error}", file.display()))?;
    let found = variable(&parsed, symbol).or_else(|| section(&parsed, symbol));
    let found = found.ok_or_else(|| format!("{} has no symbol `{symbol}`", file.display()))?;
    if context.ablate_within.is_some() {
        ablation::is_zero_at_start(&parsed, found.section)?;
    }
    let build = parsed.build_id().ok().flatten().map_or(0, hash);
    Ok(Wanted::Static { module: hash(module.as_bytes()), build, offset: found.address, bytes: found.bytes })
}

/// Statics of a file, as a rule names them.
struct Statics {
    address: u64,
    bytes: u64,
    section: Option<object::SectionIndex>,
}

fn variable<'a>(parsed: &object::File<'a, &'a Image>, symbol: &str) -> Option<Statics> {
    let mut all = parsed.symbols().chain(parsed.dynamic_symbols());
    let found = all.find(|entry| entry.name() == Ok(symbol) && entry.size() > 0)?;
    Some(Statics { address: found.address(), bytes: found.size(), section: found.section_index() })
}

/// The same of a data section, which stands for the variables of a file without symbols.
fn section<'a>(parsed: &object::File<'a, &'a Image>, name: &str) -> Option<Statics> {
    let found = parsed.section_by_name(name).filter(|section| section.address() > 0 && section.size() > 0)?;
    Some(Statics { address: found.address(), bytes: found.size(), section: Some(found.index()) })
}

fn locate(module: &str, program: &Path) -> Option<PathBuf> {
    let program = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    if program.file_name().is_some_and(|name| name == module) {
        return Some(program);
    }
    let given = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = program.parent().map(Path::to_owned);
    let folders = env::split_paths(&given).chain(own).chain(LIBRARY_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(module)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use tierloom_model::{PlanTag, Predicted};

    use super::*;

    fn plan(rules: &[(Selector, Action)]) -> Plan {
        let rules = rules.iter().map(|(select, place)| tierloom_model::Rule {
            object: "object".to_owned(),
            size_bytes: 1,
            select: select.clone(),
            place: place.clone(),
            options: RuleOptions::default(),
        });
        Plan {
            kind: PlanTag::Plan,
            version: 1,
            machine: "m".to_owned(),
            profile: "p".to_owned(),
            policy: "x".to_owned(),
            nodes: vec!["dram".to_owned(), "cxl".to_owned()],
            memories: Vec::new(),
            predicted: Predicted { time_s: 1.0, low_s: 1.0, high_s: 1.0, threads: 1, bytes: vec![0, 0] },
            default: Action::FirstTouch,
            rules: rules.collect(),
            phases: Vec::new(),
        }
    }

    static FILES: BTreeMap<String, PathBuf> = BTreeMap::new();

    static DRAM_CXL: LazyLock<BTreeMap<String, u32>> = LazyLock::new(|| node_of(&[("dram", 0), ("cxl", 1)]));

    fn node_of(nodes: &[(&str, u32)]) -> BTreeMap<String, u32> {
        nodes.iter().map(|(name, node)| ((*name).to_owned(), *node)).collect()
    }

    fn context<'a>(nodes: &'a [u32], node_of: &'a BTreeMap<String, u32>) -> Context<'a> {
        let options = RuleOptions::default();
        let (program, host_weights) = (Path::new("/bin/sh"), None);
        Context { nodes, node_of, program, options, host_weights, ablate_within: None, mapped: &FILES }
    }

    fn compiled(select: Selector, action: Action, nodes: &[u32]) -> Compiled {
        Compiled::new(&plan(&[(select, action)]), &context(nodes, &DRAM_CXL))
    }

    fn reason(select: Selector, action: Action, nodes: &[u32]) -> String {
        compiled(select, action, nodes).rules[0].left_out.clone().unwrap_or_default()
    }

    fn weighted(dram: u32, cxl: u32) -> Action {
        Action::Weighted(BTreeMap::from([("cxl".to_owned(), cxl), ("dram".to_owned(), dram)]))
    }

    #[test]
    fn nodes_become_numbers_where_they_exist() {
        let both = Action::Interleave(vec!["dram".to_owned(), "cxl".to_owned()]);
        assert!(reason(Selector::SizeAtLeast(1), both.clone(), &[0]).contains("node 1 (`cxl`)"));
        let here = compiled(Selector::SizeAtLeast(1), both, &[0, 1]);
        assert_eq!(here.rules.len(), 2, "the rule and the default");
        assert_eq!(here.rules[0].left_out, None);
        let words: Vec<_> = here.words.into_iter().map(std::sync::atomic::AtomicU64::new).collect();
        let mut reader = tierloom_wire::RuleReader::new(&words);
        assert_eq!(reader.read(), Some(Rule::new(Select::SizeAtLeast(1), Policy::Interleave(0b11))));
        assert_eq!(reader.read(), Some(Rule::new(Select::Everything, Policy::FirstTouch)));
    }

    #[test]
    fn weights_are_in_the_order_of_nodes() {
        let swapped = node_of(&[("dram", 1), ("cxl", 0)]);
        let place = |node_of| resolve(&weighted(1, 3), &context(&[0, 1], node_of));
        let turns =
            |first, second| Place::Weighted(vec![Turn { node: 0, units: first }, Turn { node: 1, units: second }]);
        assert_eq!(place(&DRAM_CXL), Ok(turns(1, 3)));
        assert_eq!(place(&swapped), Ok(turns(3, 1)));
        assert_eq!(turns(1, 3).shares(), BTreeMap::from([(0, 0.25), (1, 0.75)]));
    }

    #[test]
    fn weights_of_nodes_that_are_one_here_are_one_place() {
        let one = node_of(&[("dram", 0), ("cxl", 0), ("far", 2)]);
        assert_eq!(resolve(&weighted(1, 3), &context(&[0], &one)), Ok(Place::Prefer(1)));
        let three = Action::Weighted(["dram", "cxl", "far"].map(str::to_owned).into_iter().zip([1, 2, 5]).collect());
        let turns = [(0, 3), (2, 5)].map(|(node, units)| Turn { node, units });
        assert_eq!(resolve(&three, &context(&[0, 2], &one)), Ok(Place::Weighted(turns.to_vec())));
    }

    #[test]
    fn the_host_takes_one_ratio() {
        use crate::host_weights::ratio_of;
        let ratio = |second| {
            let rules = [(Selector::SizeAtLeast(9), weighted(3, 1)), (Selector::SizeAtLeast(5), second)];
            ratio_of(&Compiled::new(&plan(&rules), &context(&[0, 1], &DRAM_CXL)))
        };
        assert_eq!(ratio(weighted(3, 1)).unwrap(), Some(BTreeMap::from([(0, 3), (1, 1)])));
        let refused = ratio(weighted(1, 1)).unwrap_err().to_string();
        assert!(refused.contains("weighs `object` and `object` differently"), "{refused}");
    }

    #[test]
    fn the_host_does_it_where_it_has_the_weights() {
        let host = BTreeMap::from([(0, 3), (1, 1)]);
        let by_kernel = |action| {
            let context = Context { host_weights: Some(&host), ..context(&[0, 1], &DRAM_CXL) };
            Compiled::new(&plan(&[(Selector::SizeAtLeast(1), action)]), &context).rules[0].options.by_kernel
        };
        assert!(by_kernel(weighted(3, 1)) && !by_kernel(weighted(1, 1)));
    }

    #[test]
    fn options_have_consequences() {
        let options = RuleOptions { hold: true, hint_faults: Some(true), unit_bytes: None };
        let context = Context { options, ..context(&[0, 1], &DRAM_CXL) };
        let compiled = Compiled::new(&plan(&[(Selector::SizeAtLeast(1), weighted(1, 1))]), &context);
        assert_eq!(
            compiled.rules[0].consequences(),
            [Warning::ObjectsLocked, Warning::MayMigrate, Warning::PopulatedAtOnce]
        );
        assert!(compiled.rules[1].consequences().is_empty(), "nobody locks a whole program");
    }

    #[test]
    fn what_cannot_be_found_says_so() {
        let dram = || Action::Prefer("dram".to_owned());
        assert!(reason(Selector::Name("paper".to_owned()), dram(), &[0]).contains("only a name"));
        assert!(reason(Selector::Symbol("sh:none".to_owned()), dram(), &[0]).contains("none"));
        assert!(reason(Selector::Symbol("nolib.so:x".to_owned()), dram(), &[0]).contains("nolib.so"));
        assert!(reason(Selector::Stack(vec!["a@xyz+0x1".to_owned()]), dram(), &[0]).contains("build id"));
        assert_eq!(reason(Selector::File("/data".to_owned()), dram(), &[0]), "");
    }

    #[test]
    fn the_variables_of_a_file_without_symbols_are_a_section() {
        let program = std::env::current_exe().unwrap();
        let context = Context { program: &program, ..context(&[0], &DRAM_CXL) };
        let module = program.file_name().unwrap().to_string_lossy();
        let bytes = |symbol: &str| match find_symbol(&format!("{module}:{symbol}"), &context) {
            Ok(Wanted::Static { bytes, .. }) => bytes,
            other => panic!("{other:?}"),
        };
        assert!(bytes(".bss") > 0 && bytes(".data") > 0);
        assert!(find_symbol(&format!("{module}:.none"), &context).is_err());
        // A section that is not loaded is no memory.
        assert!(find_symbol(&format!("{module}:.symtab"), &context).is_err());
    }

    #[test]
    fn a_stack_is_hashed_frame_by_frame() {
        let frame = stack_frame("libm.so.6@00ff+0x1234").unwrap();
        assert_eq!(frame, RuleFrame { module: hash(b"libm.so.6"), build: hash(&[0, 255]), offset: 0x1234 });
        assert_eq!(stack_frame("prog@+0x10").unwrap().build, 0);
    }
}
