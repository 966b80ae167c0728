//! Every file format: what is written reads back unchanged, and what is wrong is said with the
//! file, the key, and what to do.

mod some;

use proptest::prelude::*;
use tierloom_model::{Action, Machine, ModelError, Placement, Plan, Profile};

proptest! {
    #[test]
    fn a_machine_survives_its_file(machine in some::machine()) {
        prop_assert_eq!(Machine::from_toml(&machine.to_toml(), "m.toml"), Ok(machine));
    }

    #[test]
    fn a_profile_survives_its_file(profile in some::profile()) {
        prop_assert_eq!(Profile::from_json(&profile.to_json(), "profile.json"), Ok(profile));
    }

    #[test]
    fn a_plan_survives_its_file(plan in some::plan()) {
        prop_assert_eq!(Plan::from_toml(&plan.to_toml(), "p.toml"), Ok(plan));
    }

    #[test]
    fn a_file_says_first_what_it_is_and_is_read_as_that_alone(
        machine in some::machine(), profile in some::profile(), plan in some::plan()
    ) {
        let (machine_text, profile_text, plan_text) = (machine.to_toml(), profile.to_json(), plan.to_toml());
        prop_assert!(machine_text.starts_with("kind = \"machine\"\nversion = 1\n"));
        let head = "{\n  \"kind\": \"profile\",\n  \"version\": 1,\n";
        prop_assert!(profile_text.starts_with(head), "{profile_text}");
        prop_assert!(plan_text.starts_with("kind = \"plan\"\nversion = 1\n"));
        let as_machine = Machine::from_toml(&plan_text, "p.toml").expect_err("a plan").to_string();
        prop_assert!(as_machine.contains("p.toml: kind: this is a plan, not a machine"), "{as_machine}");
        let as_plan = Plan::from_toml(&machine_text, "m.toml").expect_err("a machine").to_string();
        prop_assert!(as_plan.contains("m.toml: kind: this is a machine, not a plan"), "{as_plan}");
        let as_machine = Machine::from_json(&profile_text, "f.json").expect_err("a profile").to_string();
        prop_assert!(as_machine.contains("f.json: kind: this is a profile, not a machine"), "{as_machine}");
        let answer = Machine::from_json("{\"kind\": \"inference\", \"version\": 2}", "i.json").expect_err("an answer");
        prop_assert!(answer.to_string().contains("this is an inference, not a machine"), "{answer}");
    }

    #[test]
    fn files_of_before_did_not_say_what_they_are(
        machine in some::machine(), profile in some::profile(), plan in some::plan()
    ) {
        let machine_text = machine.to_toml().replacen("kind = \"machine\"\n", "", 1);
        prop_assert_eq!(Machine::from_toml(&machine_text, "m.toml"), Ok(machine));
        let profile_text = profile.to_json().replacen("  \"kind\": \"profile\",\n", "", 1);
        prop_assert_eq!(Profile::from_json(&profile_text, "profile.json"), Ok(profile));
        let plan_text = plan.to_toml().replacen("kind = \"plan\"\n", "", 1);
        prop_assert_eq!(Plan::from_toml(&plan_text, "p.toml"), Ok(plan));
    }

    #[test]
    fn a_file_with_a_line_lost_is_answered_not_a_crash(machine in some::machine(), line in 0usize..60) {
        let text: Vec<String> = machine.to_toml().lines().map(str::to_owned).collect();
        let kept: Vec<String> = text.iter().enumerate().filter(|(at, _)| *at != line).map(|(_, l)| l.clone()).collect();
        if let Err(error) = Machine::from_toml(&kept.join("\n"), "m.toml") {
            prop_assert!(error.to_string().starts_with("m.toml:"), "{error}");
            prop_assert!(error.to_string().contains("hint: "), "{error}");
        }
    }

    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let texts = [text.clone(), format!("version = 1\n{text}")];
        for text in texts {
            prop_assert!(Machine::from_toml(&text, "m").is_err());
            prop_assert!(Plan::from_toml(&text, "p").is_err());
            prop_assert!(Profile::from_json(&text, "f").is_err());
        }
    }

    #[test]
    fn rows_that_are_not_distributions_are_no_placement(row in prop::collection::vec(-1.0f64..1.5, 3)) {
        let sum: f64 = row.iter().sum();
        let good = row.iter().all(|f| *f >= 0.0) && (sum - 1.0).abs() < 1e-9;
        prop_assert_eq!(Placement::new(vec![row], 3).is_ok(), good);
    }
}

/// The message that `edit`ing a good machine file gives.
fn machine_complaint(from: &str, to: &str) -> String {
    let text = some::small_machine_text();
    assert!(text.contains(from), "the sample file holds `{from}`");
    match Machine::from_toml(&text.replacen(from, to, 1), "box.toml") {
        Ok(_) => panic!("`{to}` was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_sample_machine_is_good() {
    let machine = Machine::from_toml(&some::small_machine_text(), "box.toml").expect("the sample file is good");
    assert_eq!(machine.memories_by_distance(0), vec![0, 1]);
    assert!(machine.path(0, 1).is_some_and(|path| path.to == "cxl"));
    assert!(machine.path(0, 2).is_none());
}

#[test]
fn an_unknown_key_is_named_with_those_that_are_known() {
    let complaint = machine_complaint("title =", "tittle =");
    assert!(
        complaint.contains("box.toml") && complaint.contains("tittle") && complaint.contains("`title`"),
        "{complaint}"
    );
    assert!(complaint.contains("line 3"), "{complaint}");
}

#[test]
fn all_that_is_wrong_with_a_file_is_said_at_once() {
    let good = some::small_machine_text();
    let bad = good.replace("idle_ns = { value = ", "idle_ns = { value = -").replacen("value = 8,", "value = 0,", 1);
    let faults = good.matches("idle_ns = { value = ").count() + 1;
    assert!(faults > 2, "{good}");
    let told = Machine::from_toml(&bad, "box.toml").expect_err("it is wrong").to_string();
    assert!(told.starts_with(&format!("box.toml: {faults} things are wrong\n  sockets[0].cores: 0 is not")), "{told}");
    assert_eq!(told.matches("].idle_ns: -").count(), faults - 1, "{told}");
    assert_eq!((told.matches("hint: ").count(), told.lines().count()), (1, faults + 2), "{told}");
}

#[test]
fn a_message_ends_however_much_is_wrong() {
    let mut plan = Plan::from_toml(&some::small_plan_text(), "p.toml").expect("a good plan");
    let mut rule = plan.rules[0].clone();
    rule.place = Action::Prefer("nowhere".to_owned());
    plan.rules = vec![rule; 50];
    let told = Plan::from_toml(&plan.to_toml(), "p.toml").expect_err("50 places that are none").to_string();
    assert!(told.starts_with("p.toml: 50 things are wrong\n  rules[0].place: there is no node `nowhere`"), "{told}");
    assert!(told.ends_with("\n  and 30 more\nhint: mend each of them"), "{told}");
}

#[test]
fn each_fault_of_public_curves_is_refused_with_its_place() {
    let one_column = machine_complaint("[10.0, 100.0]", "[10.0]");
    assert!(one_column.contains("invalid length"), "{one_column}");
    let negative = machine_complaint("[0.0, 90.0]", "[-3.0, 90.0]");
    assert!(negative.contains("paths[0].load.points[0].points[0][0] (GB/s)"), "{negative}");
    let falling = machine_complaint("[20.0, 140.0]", "[20.0, 95.0]");
    assert!(falling.contains("falls below") && falling.contains("points[2]"), "{falling}");
    let backwards = machine_complaint("[20.0, 140.0]", "[9.0, 140.0]");
    assert!(backwards.contains("does not grow"), "{backwards}");
    let megabytes = machine_complaint("[20.0, 140.0]", "[200000.0, 140.0]");
    assert!(megabytes.contains("MB/s"), "{megabytes}");
    let microseconds = machine_complaint("[0.0, 90.0]", "[0.0, 0.09]");
    assert!(microseconds.contains("cycles or µs"), "{microseconds}");
    let single = machine_complaint("[[0.0, 90.0], [10.0, 100.0], [20.0, 140.0]]", "[[0.0, 90.0]]");
    assert!(single.contains("two points or more"), "{single}");
}

#[test]
fn random_reads_are_no_faster_and_a_memory_takes_a_line_or_more() {
    let idle = "idle_ns = { value = 90.0, kind = \"published\", source = \"paper\" }";
    let random =
        |ns: f64| format!("{idle}\nrandom_idle_ns = {{ value = {ns:?}, kind = \"published\", source = \"paper\" }}");
    let faster = machine_complaint(idle, &random(80.0));
    assert!(faster.contains("paths[0].random_idle_ns") && faster.contains("90"), "{faster}");
    let text = some::small_machine_text().replacen(idle, &random(120.0), 1);
    let machine = Machine::from_toml(&text, "box.toml").expect("slower random reads");
    assert!((machine.paths[0].random_extra_ns() - 30.0).abs() < 1e-9 && machine.paths[1].random_extra_ns() == 0.0);
    let none = "kind = \"cxl\"\nlines_in_flight = { value = 0.5, kind = \"published\", source = \"paper\" }";
    assert!(machine_complaint("kind = \"cxl\"", none).contains("memories[1].lines_in_flight"));
    let stranger = random(95.0).trim_end_matches("paper\" }").to_owned() + "papper\" }";
    assert!(machine_complaint(idle, &stranger).contains("[sources]"));
}

#[test]
fn names_and_sources_must_exist() {
    assert!(machine_complaint("to = \"cxl\"", "to = \"clx\"").contains("use one of: dram, cxl"));
    assert!(machine_complaint("links = [\"upi\"]", "links = [\"upl\"]").contains("paths[1].links"));
    assert!(machine_complaint("source = \"paper\"", "source = \"papper\"").contains("[sources]"));
    assert!(machine_complaint("name = \"cxl\"", "name = \"dram\"").contains("used twice"));
    assert!(machine_complaint("read_fraction = 1.0", "read_fraction = 66.0").contains("0.66"));
}

#[test]
fn versions_are_looked_at_first() {
    let newer = Machine::from_toml("version = 2\nshape = \"new\"", "m.toml");
    assert!(matches!(newer, Err(ModelError::Version { found: 2, expected: 1, .. })), "{newer:?}");
    let none = Profile::from_json("{\"hello\": 1}", "p.json").expect_err("no version");
    assert!(none.to_string().contains("p.json: version: there is no version number"), "{none}");
    let cut = Profile::from_json("{\"version\": 1,", "p.json").expect_err("cut off");
    assert!(cut.to_string().contains("line 1 column"), "{cut}");
}

#[test]
fn a_plan_may_only_name_its_nodes() {
    let text = some::small_plan_text();
    assert!(Plan::from_toml(&text, "p.toml").is_ok());
    let stranger = text.replacen("weighted = { cxl = 1", "weighted = { hbm = 1", 1);
    let complaint = Plan::from_toml(&stranger, "p.toml").expect_err("hbm").to_string();
    assert!(complaint.contains("rules[0].place") && complaint.contains("use one of: dram, cxl"), "{complaint}");
    let heavy = text.replacen("dram = 3", "dram = 300", 1);
    assert!(Plan::from_toml(&heavy, "p.toml").expect_err("300").to_string().contains("1 to 255"));
    let frame = text.replacen("app@ab12+0x40", "app+40", 1);
    assert!(Plan::from_toml(&frame, "p.toml").expect_err("frame").to_string().contains("module@build-id+0xoffset"));
}

#[test]
fn a_plan_says_what_is_wrong_with_its_options_and_phases() {
    let rule =
        "\n[[rules]]\nobject = \"a\"\nsize_bytes = 1\nselect = { size_at_least = 1 }\nplace = { prefer = \"cxl\" }\n";
    let read = |more: &str| Plan::from_toml(&format!("{}{rule}{more}", some::small_plan_text()), "p.toml");
    assert!(read("options = { hold = true, hint_faults = false, unit_bytes = 65536 }\n").is_ok());
    let unit = read("options = { unit_bytes = 5000 }\n").unwrap_err().to_string();
    assert!(unit.contains("options.unit_bytes") && unit.contains("power of two"), "{unit}");
    let phase = |object: &str, start_s: f64| {
        format!(
            "\n[[phases]]\nname = \"x\"\nstart_s = {start_s}\ngain_s = 1.0\nmoves = [{{ object = \"{object}\", place = {{ prefer = \"dram\" }} }}]\n"
        )
    };
    let plan = read(&phase("a", 2.0)).unwrap();
    assert_eq!(plan.at_phase(0).rules.last().unwrap().place, Action::Prefer("dram".to_owned()));
    let unknown = read(&phase("b", 2.0)).unwrap_err().to_string();
    assert!(unknown.contains("phases[0].moves[0].object"), "{unknown}");
    let backwards = read(&(phase("a", 2.0) + &phase("a", 1.0))).unwrap_err().to_string();
    assert!(backwards.contains("phases[1]"), "{backwards}");
}

#[test]
fn a_plan_says_what_all_of_its_memories_are_or_none() {
    let table = |name: &str, figure: &str| {
        format!("[[memories]]\nname = \"{name}\"\nkind = \"dram\"\nnear = true\ncapacity_bytes = 1\n{figure}\n")
    };
    let read = |tables: &str| {
        Plan::from_toml(&some::small_plan_text().replacen("[[rules]]", &format!("{tables}[[rules]]"), 1), "p.toml")
    };
    let plan = read(&(table("dram", "idle_ns = 90.0") + &table("cxl", ""))).unwrap();
    assert_eq!((plan.memories[0].idle_ns, plan.memories[1].gb_s), (Some(90.0), None));
    assert_eq!(plan.used_memories(), ["cxl", "dram"].into());
    let one = read(&table("dram", "")).unwrap_err().to_string();
    assert!(one.contains("p.toml: memories") && one.contains("those of `nodes` are"), "{one}");
    let wrong = read(&(table("dram", "gb_s = -1.0") + &table("cxl", ""))).unwrap_err().to_string();
    assert!(wrong.contains("memories[0].gb_s"), "{wrong}");
}
