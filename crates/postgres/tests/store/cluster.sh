# The server of the tests: `cluster.sh PROGRAMS FOLDER SETTING PORT`. Each line `kill` ends it as a crash would and starts it again; the end
# of the input ends it for good, also where the tests were killed.
programs=$1 folder=$2 setting=$3 port=$4
cd "$folder" || exit
"$programs/initdb" --no-sync --auth=trust --encoding=UTF8 --locale=C --username=postgres --pgdata=data >log 2>&1 || exit

start() {
    "$programs/postgres" -D data -k "$folder" -p "$port" -c listen_addresses= -c "$setting" -c max_connections=200 \
        -c recovery_init_sync_method=syncfs -c shared_buffers=32MB -c autovacuum=off >>log 2>&1 </dev/null &
    server=$!
}

start
while read -r _; do
    kill -KILL "$server"
    wait "$server" 2>/dev/null
    # Its children go by themselves, and until then none can start.
    until "$programs/pg_isready" --quiet --host="$folder" --port="$port"; do
        kill -0 "$server" 2>/dev/null || start
        sleep 0.02
    done
done
kill -QUIT "$server"
wait "$server"
cd / && rm -rf "$folder"
