//! Skill scenarios: listing reads no skill, and a skill that does not match its entry is rejected.

use wharf_client::Connection;
use wharf_wire::Skill;

use crate::ExerciseResult;

/// Lists the skills without reading any.
pub async fn list_skills(connection: &Connection) -> ExerciseResult {
    fetch_skills(connection).await.map(drop)
}

/// Loads each skill and expects every load to fail with a mismatch.
pub async fn expect_mismatches(connection: &Connection) -> ExerciseResult {
    for skill in fetch_skills(connection).await? {
        match connection.load_skill(&skill).await {
            Err(error) if error.is_mismatch() => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Err("loaded a skill that does not match its entry".into()),
        }
    }
    Ok(())
}

async fn fetch_skills(connection: &Connection) -> ExerciseResult<Vec<Skill>> {
    let listing = connection.list_skills().await?;
    if let Some(withheld) = listing.withheld.first() {
        return Err(format!("skill withheld: {}", withheld.reason).into());
    }
    if listing.items.is_empty() { Err("the server lists no skills".into()) } else { Ok(listing.items) }
}
