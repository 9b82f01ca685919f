//! A login from end to end with parts of somebody else's making: `oidc-provider` as the authorization server, a server
//! on the TypeScript SDK behind it, and headless Chromium as the browser that `wharf auth` opens.
//!
//! `cargo xtask test` installs them and says where; a missing one is a failure and never skipped.

mod desk;
mod login_home;

use desk::Desk;
use login_home::LoginHome;

#[test]
fn login_call_expiry_refresh_step_up_and_logout() {
    let mut desk = Desk::open();
    let home = LoginHome::with_server(&desk.resource);

    let refused = home.run("call guarded read text=ahoy");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("wharf auth guarded"), "{refused:?}");

    let login = home.run("auth guarded --yes");
    assert_eq!(login.code, Some(0), "{login:?}");
    desk.has_said("granted authorization_code");
    home.learns_secrets();

    let called = home.run("call guarded read text=ahoy");
    assert_eq!((called.code, called.stdout.trim()), (Some(0), "ahoy"), "{called:?}");
    assert_eq!(desk.count("granted refresh_token"), 0, "there was no need");
    for round in 1..=3 {
        desk.expire();
        let called = home.run("call guarded read text=ahoy");
        assert_eq!((called.code, called.stdout.trim()), (Some(0), "ahoy"), "{called:?}");
        assert_eq!(desk.count("granted refresh_token"), round, "one refresh each, by a token that is used once");
        home.learns_secrets();
    }
    assert_eq!(desk.count("refused"), 0, "every refresh token was taken");

    let refused = home.run("call guarded write text=ahoy");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("mcp:write"), "it says what is missing: {refused:?}");

    let more = home.run("auth guarded --scope mcp:write --yes");
    assert_eq!(more.code, Some(0), "{more:?}");
    home.learns_secrets();
    for tool in ["write", "read"] {
        let called = home.run(&format!("call guarded {tool} text=ahoy"));
        assert_eq!((called.code, called.stdout.trim()), (Some(0), "ahoy"), "{tool}: {called:?}");
    }

    let status = home.run("auth status --json");
    assert!(status.stdout.contains(&desk.issuer) && status.stdout.contains("mcp:write"), "{status:?}");

    let logout = home.run("logout guarded");
    assert_eq!(logout.code, Some(0), "{logout:?}");
    desk.has_said("refresh token destroyed");
    let refused = home.run("call guarded read text=ahoy");
    assert_eq!(refused.code, Some(4), "{refused:?}");

    home.has_told_no_secret();
}
