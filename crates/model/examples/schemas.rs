//! JSON schemas of the nouns' files and of what `plan` answers, by name. `python/tierloom/schema/documents.json` holds
//! what this prints, and `tools/documents.py` makes Python's types of it.

#![expect(clippy::print_stdout, reason = "what it is for")]

fn main() {
    println!("{}", tierloom_model::schemas());
}
