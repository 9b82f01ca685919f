//! A persistent name table: a changed copy shares most of its memory with the original.
//!
//! A keyed hash distributes names over shards. A change copies only the shards of the names concerned and shares the
//! rest. Readers keep the version they hold, and the cost of a change is proportional to the number of changed names.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

const SHARD_COUNT: usize = 256;

/// A persistent table of names. A name with several owners resolves to none of them, regardless of insertion order.
pub struct NameTable<V> {
    shards: Arc<[Arc<TableShard<V>>]>,
    // Keyed, because remote peers choose the names.
    hasher: RandomState,
    len: usize,
}

/// A name with its owner and value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameEntry<V> {
    /// The name.
    pub name: Arc<str>,
    /// The owner of the name.
    pub owner: Arc<str>,
    /// The value registered under the name.
    pub value: V,
}

/// Result of looking up a name.
#[derive(Debug, PartialEq, Eq)]
pub enum NameLookup<'a, V> {
    /// The name has no owner.
    Nothing,
    /// The value of the only entry.
    One(&'a V),
    /// The name has several entries and is ambiguous. Sorted by owner.
    Several(Vec<&'a NameEntry<V>>),
}

/// Sorted by hash, so that entries of one name are adjacent (except for hash collisions).
type TableShard<V> = Vec<(u64, NameEntry<V>)>;

impl<V: Clone> NameTable<V> {
    /// Creates an empty table.
    pub fn new() -> Self {
        let empty = Arc::new(Vec::new());
        Self { shards: vec![empty; SHARD_COUNT].into(), hasher: RandomState::new(), len: 0 }
    }

    /// Looks up a name.
    pub fn find(&self, name: &str) -> NameLookup<'_, V> {
        let hash = self.hasher.hash_one(name);
        let shard = &self.shards[shard_index(hash)];
        let from = shard.partition_point(|(other, _)| *other < hash);
        let same = shard[from..].iter().take_while(|(other, _)| *other == hash);
        let mut holders = same.map(|(_, held)| held).filter(|held| &*held.name == name);
        match (holders.next(), holders.next()) {
            (None, _) => NameLookup::Nothing,
            (Some(held), None) => NameLookup::One(&held.value),
            (Some(first), Some(second)) => {
                let mut all: Vec<_> = [first, second].into_iter().chain(holders).collect();
                all.sort_by(|one, other| one.owner.cmp(&other.owner));
                NameLookup::Several(all)
            }
        }
    }

    /// Returns the table after one owner removes and adds names.
    ///
    /// Removals apply before additions, so a name in both lists is replaced. An addition by itself never replaces an
    /// entry, so a name added twice has two entries. Removing a name that the owner does not hold has no effect.
    pub fn with_changes<'n>(
        &self,
        owner: &Arc<str>,
        remove: impl IntoIterator<Item = &'n str>,
        add: impl IntoIterator<Item = (Arc<str>, V)>,
    ) -> Self {
        let mut edits: ShardEdits<'n, V> = HashMap::new();
        for name in remove {
            let hash = self.hasher.hash_one(name);
            edits.entry(shard_index(hash)).or_default().remove.push((hash, name));
        }
        self.plan_additions(
            &mut edits,
            add.into_iter().map(|(name, value)| NameEntry { name, owner: owner.clone(), value }),
        );
        self.apply_edits(owner, edits)
    }

    fn plan_additions(&self, edits: &mut ShardEdits<'_, V>, add: impl Iterator<Item = NameEntry<V>>) {
        for held in add {
            let hash = self.hasher.hash_one(&*held.name);
            edits.entry(shard_index(hash)).or_default().add.push((hash, held));
        }
    }

    fn apply_edits(&self, owner: &str, edits: ShardEdits<'_, V>) -> Self {
        let mut shards = self.shards.to_vec();
        let mut len = self.len;
        for (at, edit) in edits {
            let before = shards[at].len();
            let shard = edit.apply(owner, &shards[at]);
            len = len - before + shard.len();
            shards[at] = Arc::new(shard);
        }
        Self { shards: shards.into(), hasher: self.hasher.clone(), len }
    }

    /// Iterates over all entries in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &NameEntry<V>> {
        self.shards.iter().flat_map(|shard| shard.iter().map(|(_, held)| held))
    }

    /// Returns the number of entries. A name with several entries is counted several times.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn shard_index(hash: u64) -> usize {
    (hash >> 56) as usize % SHARD_COUNT
}

/// Pending changes by shard.
type ShardEdits<'n, V> = HashMap<usize, ShardEdit<'n, V>>;

/// Pending changes of one shard.
struct ShardEdit<'n, V> {
    remove: Vec<(u64, &'n str)>,
    add: TableShard<V>,
}

impl<V: Clone> ShardEdit<'_, V> {
    fn apply(self, owner: &str, shard: &TableShard<V>) -> TableShard<V> {
        let gone = |hash: &u64, held: &NameEntry<V>| {
            *held.owner == *owner && self.remove.iter().any(|(other, name)| other == hash && **name == *held.name)
        };
        let mut edited: TableShard<V> = Vec::with_capacity(shard.len() + self.add.len());
        edited.extend(shard.iter().filter(|(hash, held)| !gone(hash, held)).cloned());
        edited.extend(self.add);
        edited.sort_by_key(|(hash, _)| *hash);
        edited
    }
}

impl<V> Default for ShardEdit<'_, V> {
    fn default() -> Self {
        Self { remove: Vec::new(), add: Vec::new() }
    }
}

/// Builds a table with many owners at once, several times faster than adding one owner after another.
impl<V: Clone> FromIterator<NameEntry<V>> for NameTable<V> {
    fn from_iter<I: IntoIterator<Item = NameEntry<V>>>(all: I) -> Self {
        let (empty, mut edits) = (Self::new(), HashMap::new());
        empty.plan_additions(&mut edits, all.into_iter());
        empty.apply_edits("", edits)
    }
}

impl<V: Clone> Default for NameTable<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Clone for NameTable<V> {
    fn clone(&self) -> Self {
        Self { shards: self.shards.clone(), hasher: self.hasher.clone(), len: self.len }
    }
}

impl<V> std::fmt::Debug for NameTable<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NameTable({} held)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Reference model of a table: a plain list with linear lookup.
    #[derive(Default)]
    struct ReferenceTable(Vec<(String, String, u32)>);

    impl ReferenceTable {
        fn apply(&mut self, owner: &str, remove: &[String], add: &[(String, u32)]) {
            self.0.retain(|(held_by, name, _)| held_by != owner || !remove.contains(name));
            self.0.extend(add.iter().map(|(name, value)| (owner.to_owned(), name.clone(), *value)));
        }

        fn names(&self) -> BTreeMap<&str, Vec<(&str, u32)>> {
            let mut names: BTreeMap<&str, Vec<(&str, u32)>> = BTreeMap::new();
            for (owner, name, value) in &self.0 {
                names.entry(name).or_default().push((owner, *value));
            }
            names
        }
    }

    fn check(table: &NameTable<u32>, model: &ReferenceTable) {
        let names = model.names();
        for name in ["a", "b", "c", "d", "e", "never"] {
            let expected = names.get(name).map_or(&[][..], Vec::as_slice);
            match (table.find(name), expected) {
                (NameLookup::Nothing, []) => (),
                (NameLookup::One(value), [(_, expected)]) => assert_eq!(value, expected, "{name}"),
                (NameLookup::Several(held), expected) => {
                    let held = held.iter().map(|held| (&*held.owner, held.value));
                    assert_eq!(sort_entries(held), sort_entries(expected.iter().copied()), "{name}");
                }
                (found, expected) => panic!("{name}: {found:?} instead of {expected:?}"),
            }
        }
        assert_eq!(table.len(), model.0.len());
        assert_eq!(table.iter().count(), model.0.len());
    }

    fn sort_entries<'a>(held: impl Iterator<Item = (&'a str, u32)>) -> Vec<(&'a str, u32)> {
        let mut held: Vec<_> = held.collect();
        held.sort_unstable();
        held
    }

    type OwnerChange = (String, Vec<String>, Vec<(String, u32)>);

    fn changes() -> impl Strategy<Value = Vec<OwnerChange>> {
        let names = || prop::collection::vec("[a-e]", 0..4);
        let added = prop::collection::vec(("[a-e]", any::<u32>()), 0..4);
        prop::collection::vec(("[x-z]", names(), added), 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn table_agrees_with_a_plain_list(changes in changes()) {
            let (mut table, mut model) = (NameTable::new(), ReferenceTable::default());
            let mut kept = Vec::new();
            for (owner, remove, add) in &changes {
                kept.push((table.clone(), ReferenceTable(model.0.clone())));
                model.apply(owner, remove, add);
                let add = add.iter().map(|(name, value)| (Arc::from(name.as_str()), *value));
                table = table.with_changes(&Arc::from(owner.as_str()), remove.iter().map(String::as_str), add);
                check(&table, &model);
            }
            for (table, model) in kept {
                check(&table, &model);
                check(&table.iter().cloned().collect(), &model);
            }
        }
    }

    fn table_with_tools(count: u32) -> NameTable<u32> {
        let add = (0..count).map(|n| (Arc::from(format!("mcp__server__tool_{n}")), n));
        NameTable::new().with_changes(&"server".into(), [], add)
    }

    #[test]
    fn change_copies_only_the_shards_of_its_names() {
        let table = table_with_tools(10_000);
        let removed = ["mcp__server__tool_7", "mcp__server__tool_8"];
        let changed = table.with_changes(&"server".into(), removed, [(Arc::from("new"), 0)]);
        let copied = std::iter::zip(&*table.shards, &*changed.shards).filter(|(one, other)| !Arc::ptr_eq(one, other));
        assert!((1..=3).contains(&copied.count()));
        assert_eq!((changed.len(), changed.find("mcp__server__tool_7")), (9_999, NameLookup::Nothing));
        assert_eq!(table.find("mcp__server__tool_7"), NameLookup::One(&7));
    }

    #[test]
    fn names_are_distributed_over_the_shards() {
        let longest = table_with_tools(10_000).shards.iter().map(|shard| shard.len()).max();
        assert!(longest < Some(120), "{longest:?} in one shard, where 39 would be even");
    }
}
