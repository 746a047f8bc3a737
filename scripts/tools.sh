# Sourced by other scripts: tools that are built from crates.io when they are first needed.

TOOLS=$PWD/target/tools
export PATH="$TOOLS/bin:$PATH"

# install_tool NAME VERSION: puts that version of a cargo subcommand below target/tools, unless it is there.
install_tool() {
    if [[ $("$TOOLS/bin/$1" --version 2>/dev/null) == *"$2"* ]]; then return; fi
    echo "installing $1 $2 into target/tools" >&2
    CARGO_TARGET_DIR="$TOOLS/target" cargo install --quiet --locked --root "$TOOLS" --version "$2" "$1"
    # What it was built from is a gigabyte, and not needed again.
    rm -rf "$TOOLS/target"
}
