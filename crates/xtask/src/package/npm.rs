//! The npm packages: `wharf-mcp` with the command, and one package per platform with the binary.
//!
//! The command is a shell script that replaces itself by the binary. A script for Node would add Node's start of 40 ms
//! to every command, and a script at installation that links the binary is often disabled.

use serde_json::{Value, json};

use super::contents::PackageContents;
use super::file_tree::FileTree;
use super::tar::{DirectoryEntries, TarOptions, write_tar_gz};
use super::{DESCRIPTION, SUMMARY};
use crate::run::TaskResult;

const SHIM: &str = include_str!("shim.sh");

/// Returns `wharf-mcp`. It depends on the platform package of the same version only: a dependency on a package that is
/// not published could be published by others.
pub fn write_command_package(contents: &PackageContents) -> TaskResult<Vec<u8>> {
    let platform = contents.target.npm_package();
    let mut tree = FileTree::default();
    let pages: Vec<String> = contents.manual_pages.iter().map(|page| format!("./man/man1/{}", page.name)).collect();
    let mut manifest = manifest(contents, "wharf-mcp", SUMMARY);
    manifest["bin"] = json!({ "wharf": "bin/wharf" });
    manifest["man"] = json!(pages);
    manifest["optionalDependencies"] = json!({ &platform: contents.version });
    tree.add_text("package.json", &pretty(&manifest)?);
    tree.add_text("README.md", DESCRIPTION);
    tree.add_program("bin/wharf", SHIM.replace("@PLATFORM@", &platform).as_bytes());
    tree.add_text("completions/wharf.bash", &contents.bash);
    tree.add_text("completions/_wharf", &contents.zsh);
    tree.add_text("completions/wharf.fish", &contents.fish);
    for page in &contents.manual_pages {
        tree.add_text(format!("man/man1/{}", page.name), &page.text);
    }
    add_licences(contents, &mut tree);
    write_tgz(contents, &tree)
}

/// Returns the package with the binary.
pub fn write_platform_package(contents: &PackageContents) -> TaskResult<Vec<u8>> {
    let name = contents.target.npm_package();
    let summary =
        format!("The binary of wharf-mcp for Linux on {}. Install wharf-mcp instead.", contents.target.npm_cpu);
    let mut manifest = manifest(contents, &name, &summary);
    manifest["os"] = json!(["linux"]);
    manifest["cpu"] = json!([contents.target.npm_cpu]);
    // Yarn keeps packages in zip files otherwise, where nothing can be executed.
    manifest["preferUnplugged"] = json!(true);
    let mut tree = FileTree::default();
    tree.add_text("package.json", &pretty(&manifest)?);
    tree.add_text("README.md", &format!("{summary}\n"));
    tree.add_program("bin/wharf", contents.binary.clone());
    add_licences(contents, &mut tree);
    write_tgz(contents, &tree)
}

fn manifest(contents: &PackageContents, name: &str, summary: &str) -> Value {
    json!({
        "name": name,
        "version": contents.version,
        "description": summary,
        "license": "MIT OR Apache-2.0",
    })
}

fn pretty(manifest: &Value) -> TaskResult<String> {
    Ok(serde_json::to_string_pretty(manifest)? + "\n")
}

fn add_licences(contents: &PackageContents, tree: &mut FileTree) {
    for licence in contents.licences() {
        tree.add_text(&licence.name, &licence.text);
    }
}

fn write_tgz(contents: &PackageContents, tree: &FileTree) -> TaskResult<Vec<u8>> {
    let options = TarOptions {
        prefix: "package/",
        directories: DirectoryEntries::Omitted,
        time: contents.time,
        compression: contents.compression,
    };
    write_tar_gz(tree, options)
}
