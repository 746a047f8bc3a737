#!/bin/sh
# An agent in shell, which hands its task on.
#
#   shell-agent.sh AGENT STORE KEY
#
# Begins the task, or goes on with what another agent left: killed at any point, the next one finishes the task, and no
# finished step is done again. It needs `ckpt` in the PATH, and works in the current folder.
#
# TAKE_OVER=1   takes the task from an owner whose claim still stands. End that process for sure first.
# PACE=SECONDS  how long each line takes
set -eu

if [ $# -ne 3 ]; then
    echo "usage: [TAKE_OVER=1] [PACE=SECONDS] $0 AGENT STORE KEY" >&2
    exit 2
fi
agent=$1 store=$2 key=$3
session=$$-$(date +%s)
fence=

# One place for what every call needs: which checkpoint, who writes, and the fence that shows whose turn it is.
report() {
    ckpt "$@" --store "$store" --key "$key" --agent "$agent" --session "$session" ${fence:+--fence "$fence"}
}

say() {
    printf '%s: %s\n' "$agent" "$*"
}

# A claim keeps others out for as long as it stands; a second agent that is started by mistake ends here with exit 4.
fence=$(report claim --for 10m ${TAKE_OVER:+--take-over}) || {
    status=$?
    [ $status -ne 4 ] || say "once that owner has ended for sure, start this with TAKE_OVER=1" >&2
    exit $status
}

# What each step writes, and where. A real agent asks a model, with the prompt of `ckpt resume`.
plan() {
    case $1 in
        "Write the header") file=page.html text="<html><head><title>Page</title></head>" ;;
        "Write the body") file=page.html text="<body>
<p>one</p>
<p>two</p>
<p>three</p>
</body>" ;;
        "Close the page") file=page.html text="</html>" ;;
        *) say "no such step: $1" >&2 && exit 2 ;;
    esac
}

# Begins the task; where a checkpoint is already it is not touched (exit 1), and this agent goes on from it.
begin() {
    report start --plan "Write the header" "Write the body" "Close the page" >/dev/null 2>&1 && return
    [ $? -eq 1 ] || report start # says what is wrong
    say "goes on with what is there"
}

# The next step begins. None is left where nothing is printed (exit 1).
next_step() {
    status=0
    step=$(report step start) || status=$?
    [ -n "$step" ]
}

work() {
    plan "$1"
    # Remove what an interrupted try of this step left: so the step can be done again from its start. A file
    # that tells where each step began is all that takes here; `ckpt resume` names the files to look at.
    if [ -f "$file.before" ]; then
        cp "$file.before" "$file"
        say "removed what was half done in $file"
    elif [ -f "$file" ]; then
        cp "$file" "$file.before"
    else
        : >"$file.before"
        : >"$file"
    fi
    # In this process, not behind a pipe: the other end of one would go on writing after this was killed.
    while IFS= read -r line; do
        sleep "${PACE:-0}"
        printf '%s\n' "$line" >>"$file"
    done <<END
$text
END
}

begin
while next_step; do
    say "begins: $step"
    work "$step"
    report step done --modified "$file" >/dev/null
    # Only after the checkpoint says so: killed before it, the step is done again.
    rm -f "$file.before"
    say "done: $step"
done

[ $status -eq 1 ] || exit $status
report release >/dev/null
say "nothing is left"
