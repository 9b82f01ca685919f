//! The compiled phrase table: every word is a number, every step of a phrase a set of numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::fold::{FoldedChar, fold};
use super::phrases::{self, CLASS_COMBINATIONS, CLASSES, FILLERS};
use super::{FindingRule, FindingWeight};

pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::compile);

/// Maximum number of multi-word classes.
pub(super) const MAX_GROUPS: usize = 8;

/// A bit set of word sets.
pub(super) type WordSetBits = [u64; 24];

#[derive(Default)]
pub(super) struct Lexicon {
    words: HashMap<WordHash, u16, BuildHasherDefault<IdentityHasher>>,
    /// Names of the multi-word classes.
    groups: Vec<&'static str>,
    /// Members of those classes, as class and words, indexed by the number of the first word.
    members: Vec<Vec<(usize, Vec<u16>)>>,
    /// Phrases indexed by their first word.
    by_word: Vec<Vec<PhrasePattern>>,
    /// Phrases indexed by their first class.
    by_group: [Vec<PhrasePattern>; MAX_GROUPS],
    /// Numbers of the word sets, by their source text.
    sets: HashMap<String, u16>,
    /// The sets that contain each word and each multi-word class.
    sets_of_word: Vec<WordSetBits>,
    sets_of_group: [WordSetBits; MAX_GROUPS],
    /// Names of the classes for combination matching, one bit each.
    traits: Vec<&'static str>,
    /// The combination classes of each word and each multi-word class.
    by_trait: (Vec<u64>, [u64; MAX_GROUPS]),
    /// Combinations: a sentence matches if it has all of the first bits and none of the second.
    together: Vec<(FindingRule, FindingWeight, u64, u64)>,
    /// The words of a warning.
    pub(super) warning: WarningWords,
}

/// The words of `do not include passwords, unless …`.
#[derive(Default)]
pub(super) struct WarningWords {
    /// Begins the warning.
    pub(super) against: PhraseStep,
    /// Acts that the warning forbids.
    pub(super) refused: PhraseStep,
    /// Acts of disclosure that the warning covers.
    pub(super) giving: PhraseStep,
    /// Ends the warning.
    pub(super) turning: PhraseStep,
}

/// A phrase from its second word on.
#[derive(Clone)]
pub(super) struct PhrasePattern {
    pub(super) rule: FindingRule,
    pub(super) weight: FindingWeight,
    pub(super) steps: Vec<PhraseStep>,
}

/// One word of a phrase, with up to `gap` other words before it. If forbidden, none of these words may match.
#[derive(Clone, Copy, Default)]
pub(super) struct PhraseStep {
    pub(super) gap: u8,
    pub(super) is_forbidden: bool,
    set: u16,
}

impl PhraseStep {
    /// Reports whether a word or class that is in these sets matches.
    pub(super) fn matches(&self, sets: &WordSetBits) -> bool {
        sets[usize::from(self.set >> 6)] >> (self.set & 63) & 1 == 1
    }
}

impl PhrasePattern {
    /// Reports whether words in these sets can contain the rest of the phrase at all.
    pub(super) fn is_possible(&self, sets: &WordSetBits) -> bool {
        self.steps.iter().all(|step| step.is_forbidden || step.matches(sets))
    }

    /// Reports whether the words are more than an identifier such as `include_transcript`, which is not an instruction.
    pub(super) fn is_not_identifier(&self, words: &str) -> bool {
        let is_place = self.rule == FindingRule::SecretPlace;
        self.weight == FindingWeight::Certain || is_place || words.contains(char::is_whitespace) || !words.contains('_')
    }
}

impl Lexicon {
    /// The bit of text in backticks.
    pub(super) const CODE_TRAIT: u64 = 1;
    /// The number of all words outside the table.
    pub(super) const UNKNOWN_WORD: u16 = 0;
    /// The number of filler words, which are skipped.
    pub(super) const FILLER_WORD: u16 = 1;

    pub(super) fn word(&self, hash: WordHash) -> u16 {
        self.words.get(&hash).copied().unwrap_or(Self::UNKNOWN_WORD)
    }

    /// Returns the phrases that may begin with a word.
    pub(super) fn phrases_starting_with(&self, word: u16) -> &[PhrasePattern] {
        self.by_word.get(usize::from(word)).map_or(&[], Vec::as_slice)
    }

    /// Returns the phrases that may begin with a member of a class.
    pub(super) fn phrases_starting_in_group(&self, group: usize) -> &[PhrasePattern] {
        &self.by_group[group]
    }

    /// Returns the combination classes of a word, as bits.
    pub(super) fn traits_of(&self, word: u16) -> u64 {
        self.by_trait.0.get(usize::from(word)).copied().unwrap_or_default()
    }

    /// Returns the combination classes of a multi-word class, as bits.
    pub(super) fn traits_of_group(&self, group: usize) -> u64 {
        self.by_trait.1[group]
    }

    /// Returns the findings of a sentence that has these bits. `meant` excludes the bits of warnings.
    pub(super) fn matching_combinations(
        &self,
        all: u64,
        meant: u64,
    ) -> impl Iterator<Item = (FindingRule, FindingWeight)> {
        let fits = move |rule: FindingRule, wanted: u64, unwanted: u64| {
            let traits = if rule.is_theft() { meant } else { all };
            traits & wanted == wanted && all & unwanted == 0
        };
        let signs = self.together.iter().filter(move |(rule, _, wanted, unwanted)| fits(*rule, *wanted, *unwanted));
        signs.map(|(rule, weight, _, _)| (*rule, *weight))
    }

    /// Returns the sets that contain a word.
    pub(super) fn sets_of(&self, word: u16) -> &WordSetBits {
        self.sets_of_word.get(usize::from(word)).unwrap_or(&[0; 24])
    }

    /// Returns the sets that contain a multi-word class.
    pub(super) fn sets_of_group(&self, group: usize) -> &WordSetBits {
        &self.sets_of_group[group]
    }

    /// Returns the class members that begin with a word.
    pub(super) fn members(&self, word: u16) -> &[(usize, Vec<u16>)] {
        self.members.get(usize::from(word)).map_or(&[], Vec::as_slice)
    }

    fn compile() -> Self {
        let mut lexicon = Self::default();
        lexicon.words.extend(FILLERS.split(' ').map(|word| (WordHash::from_word(word), Self::FILLER_WORD)));
        for (name, members) in CLASSES.iter().filter(|(_, members)| members.contains(';')) {
            lexicon.add_group(name, members);
        }
        for (rule, weight, list) in phrases::all_phrases() {
            for written in *list {
                lexicon.add_phrase(*rule, *weight, written);
            }
        }
        // The first bit is for text in backticks, which is not a word class.
        lexicon.traits.push("code");
        for (rule, weight, names) in CLASS_COMBINATIONS {
            let (mut wanted, mut unwanted) = (0, 0);
            for name in names.split(' ') {
                match name.strip_prefix('!') {
                    Some(name) => unwanted |= lexicon.trait_bit(name),
                    None => wanted |= lexicon.trait_bit(name),
                }
            }
            lexicon.together.push((*rule, *weight, wanted, unwanted));
        }
        let mut step = |written| PhraseStep { set: lexicon.set_number(written), ..PhraseStep::default() };
        lexicon.warning = WarningWords {
            against: step("@dont"),
            refused: step("@refused"),
            giving: step("@give|@send|log"),
            turning: step("@turn"),
        };
        lexicon
    }

    fn trait_bit(&mut self, name: &'static str) -> u64 {
        if let Some(known) = self.traits.iter().position(|known| *known == name) {
            return 1 << known;
        }
        let bit = 1 << self.traits.len();
        self.traits.push(name);
        match self.groups.iter().position(|group| *group == name) {
            Some(group) => self.by_trait.1[group] |= bit,
            None => class_members(name).split(' ').for_each(|word| {
                let number = usize::from(self.word_number(word));
                self.by_trait.0.resize(self.by_trait.0.len().max(number + 1), 0);
                self.by_trait.0[number] |= bit;
            }),
        }
        bit
    }

    fn add_group(&mut self, name: &'static str, members: &str) {
        let group = self.groups.len();
        self.groups.push(name);
        for member in members.split("; ") {
            let words: Vec<u16> = member.split(' ').map(|word| self.word_number(word)).collect();
            let first = usize::from(words[0]);
            self.members.resize_with(self.members.len().max(first + 1), Vec::new);
            self.members[first].push((group, words));
        }
    }

    fn add_phrase(&mut self, rule: FindingRule, weight: FindingWeight, written: &str) {
        let (mut steps, mut gap) = (Vec::new(), 0);
        for part in written.split(' ') {
            match part.strip_prefix('~') {
                Some(number) => gap = number.parse().expect("the table writes gaps as numbers"),
                None => {
                    let (choices, is_forbidden) = part.strip_prefix('!').map_or((part, false), |rest| (rest, true));
                    steps.push(PhraseStep {
                        gap: std::mem::take(&mut gap),
                        is_forbidden,
                        set: self.set_number(choices),
                    });
                }
            }
        }
        let first = steps.remove(0);
        let pattern = PhrasePattern { rule, weight, steps };
        self.by_word.resize_with(self.sets_of_word.len(), Vec::new);
        let starts = self.by_word.iter_mut().zip(&self.sets_of_word).filter(|(_, sets)| first.matches(sets));
        starts.for_each(|(list, _)| list.push(pattern.clone()));
        let groups = self.by_group.iter_mut().zip(&self.sets_of_group).filter(|(_, sets)| first.matches(sets));
        groups.for_each(|(list, _)| list.push(pattern.clone()));
    }

    /// Returns the number of a set, and marks all of its members.
    fn set_number(&mut self, written: &str) -> u16 {
        if let Some(known) = self.sets.get(written) {
            return *known;
        }
        let number = u16::try_from(self.sets.len()).expect("the table has some hundred sets");
        self.sets.insert(written.to_owned(), number);
        for choice in written.split('|') {
            match choice.strip_prefix('@') {
                None => self.add_to_set(choice, number),
                Some(name) => match self.groups.iter().position(|group| *group == name) {
                    Some(group) => set_bit(&mut self.sets_of_group[group], number),
                    None => class_members(name).split(' ').for_each(|word| self.add_to_set(word, number)),
                },
            }
        }
        number
    }

    fn add_to_set(&mut self, word: &str, set: u16) {
        let word = usize::from(self.word_number(word));
        self.sets_of_word.resize(self.sets_of_word.len().max(word + 1), WordSetBits::default());
        set_bit(&mut self.sets_of_word[word], set);
    }

    fn word_number(&mut self, word: &str) -> u16 {
        // Fillers share one number, so more numbers are free than words exist.
        let next = u16::try_from(self.words.len() + 2).expect("the table has some hundred words");
        let number = *self.words.entry(WordHash::from_word(word)).or_insert(next);
        assert_ne!(number, Self::FILLER_WORD, "`{word}` is a filler and never seen");
        number
    }
}

fn set_bit(sets: &mut WordSetBits, set: u16) {
    sets[usize::from(set >> 6)] |= 1 << (set & 63);
}

fn class_members(name: &str) -> &'static str {
    let found = CLASSES.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("the table has no class `{name}`")).1
}

/// The hash of a word's folded letters. Collisions are too rare to matter for a lint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WordHash(u64);

impl WordHash {
    /// The hash of no letters.
    pub(super) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);
    /// The hash of a leading dot, as in file names.
    pub(super) const DOT: Self = Self::EMPTY.with('.');

    pub(super) const fn with(self, letter: char) -> Self {
        Self((self.0 ^ letter as u64).wrapping_mul(0x0100_0000_01b3))
    }

    fn from_word(word: &str) -> Self {
        word.chars().fold(Self::EMPTY, |hash, letter| match fold(letter) {
            FoldedChar::Letter(letter) => hash.with(letter),
            FoldedChar::Break => hash.with(letter),
            FoldedChar::Nothing => hash,
        })
    }
}

impl std::hash::Hash for WordHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        // The map also uses the highest bits, which are of lower quality here.
        self.0 = number ^ number << 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
