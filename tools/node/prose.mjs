// Spelling and grammar of Markdown files: one line of JSON for each thing that is found, `{file, line, rule, text, says}`.
//
// usage: node prose.mjs WORDS FILE...     WORDS has one word a line that no dictionary knows
//
// Code and links are left out by the parser. Rules that we write differently on purpose are left out below.
import { readFileSync } from "node:fs";
import { Dialect, LocalLinter } from "harper.js";
import { binary } from "harper.js/binary";

const OTHERWISE = new Set([
  // Headings are sentences; cells of tables and names of commands begin with small letters; commas only where they help.
  ..."UseTitleCase SentenceCapitalization OxfordComma NoOxfordComma LongSentences Spaces".split(" "),
  // Units are units, and programs are called what their authors call them.
  ..."ExpandMemoryShorthands ExpandTimeShorthands ExpandPerformance ExpandConfiguration ExpandControl".split(" "),
  ..."ExpandStandardInputAndOutput NumericRangeEnDash UseEllipsisCharacter CompaniesProductsAndTrademarks".split(" "),
  ..."SplitWords MergeWords TransposedSpace OrthographicConsistency CompoundNouns DisjointPrefixes Overall".split(" "),
  // These take words for other parts of speech in sentences that are right: each had nothing else to say of our documents.
  ..."QuantifierNumeralConflict OneOfTheSingular MassNouns PronounInflectionBe MissingPreposition SingleBe".split(" "),
  ..."MissingTo ItsContraction InflectedVerbAfterTo AsHow TheyToThem ThatThan SimplePastToPastParticiple".split(" "),
  ..."OutOfDate HowTo HavePronoun FindOut CondenseAllThe ToTwoToo".split(" "),
]);
// Names of parts and models, letters, and what is no words; of articles, those before such.
const NAME = /\d|_|^.(\.|'s)?$|^and$/;

const [words, ...files] = process.argv.slice(2);
const linter = new LocalLinter({ binary, dialect: Dialect.British });
await linter.setup();
const known = readFileSync(words, "utf8").split("\n").filter((word) => word && !word.startsWith("#"));
await linter.importWords(known.flatMap((word) => [word, `${word}'s`]));
for (const file of files) {
  const text = readFileSync(file, "utf8");
  const found = await linter.organizedLints(text, { language: "markdown" });
  for (const [rule, lints] of Object.entries(found)) {
    if (OTHERWISE.has(rule)) continue;
    for (const lint of lints) {
      const next = text.slice(lint.span().end).split(/\s+/, 2)[1];
      if (NAME.test(rule === "AnA" ? next : lint.get_problem_text())) continue;
      const line = text.slice(0, lint.span().start).split("\n").length;
      console.log(JSON.stringify({ file, line, rule, text: lint.get_problem_text(), says: lint.message() }));
    }
  }
}
