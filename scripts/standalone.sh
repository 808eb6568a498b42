#!/bin/sh
# Runs what docs/deploy.md says of a standalone cluster, on this machine: a master and two workers from the pip installation,
# authentication and encryption on, executors whose Python packages come as an archive. First the one-shot job of the quickstart,
# then two nights of a release over the same articles: sanitise, gate, publish, verify, ledger, a rotated key, and a record that is
# withdrawn until its text is gone. Delta's jars come by --jars in the first night and by --packages in the second.
#   make quickstart && scripts/standalone.sh          about ten minutes on two cores
# KEEP=1 leaves what it made where it says.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd)
python=$here/.venv/bin/python
spark_home=$("$python" -c 'import pyspark; print(pyspark.__path__[0])')
port=${PORT:-7077}
work=$(mktemp -d)
started=""
stop() {
    for process in $started; do kill "$process" 2>/dev/null || true; done
    if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap stop EXIT INT TERM

[ -f quickstart/job.yaml ] || { echo "run 'make quickstart' first: it makes the articles, a key and the job" >&2; exit 2; }
[ -f build/wordveil-environment.tar.gz ] || PYTHON=$python scripts/pack.sh

# --- the cluster ------------------------------------------------------------------------------------------------------------------
mkdir "$work/conf"
cp lib/wordveil/data/log4j2.properties "$work/conf"
umask 077
cat > "$work/conf/spark-defaults.conf" <<CONF
spark.authenticate true
spark.authenticate.secret $(openssl rand -hex 32)
spark.network.crypto.enabled true
spark.io.encryption.enabled true
spark.executor.memory 512m
CONF
export SPARK_HOME="$spark_home" SPARK_CONF_DIR="$work/conf" SPARK_LOCAL_IP=127.0.0.1
master=spark://127.0.0.1:$port
"$spark_home/bin/spark-class" org.apache.spark.deploy.master.Master --host 127.0.0.1 --port "$port" --webui-port 0 > "$work/master.log" 2>&1 &
started="$started $!"
for worker in 1 2; do
    SPARK_LOCAL_DIRS=$work/scratch-$worker "$spark_home/bin/spark-class" org.apache.spark.deploy.worker.Worker \
        --host 127.0.0.1 --cores 1 --memory 1g --webui-port 0 --work-dir "$work/work-$worker" "$master" > "$work/worker-$worker.log" 2>&1 &
    started="$started $!"
done

# PYSPARK_PYTHON is the executors' Python, from the archive; PYSPARK_DRIVER_PYTHON the driver's.
export PYSPARK_DRIVER_PYTHON="$python" SPARK_LOCAL_DIRS="$work/scratch-driver"
archive=$here/build/wordveil-environment.tar.gz#environment
submit() { "$spark_home/bin/spark-submit" --master "$master" "$@"; }
step() { echo "== $*" >&2; }
# The value of a Python expression over the JSON document in a file, as `it`.
value() { "$python" -c 'import json, sys; it = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/$1.json" "$2"; }
expect() {
    found=$(value "$1" "$2")
    [ "$found" = "$3" ] || { echo "$1: $2 is $found, not $3" >&2; exit 1; }
}

# --- the one-shot job -------------------------------------------------------------------------------------------------------------
step "one-shot job, Parquet"
PYSPARK_PYTHON=./environment/bin/python submit --archives "$archive" \
    jobs/sanitise.py --config quickstart/job.yaml --set "output.path=$work/out" --set spark.master=null --json > "$work/job.json"
expect job 'it["records"], it["released"]' "(300, 300)"
ls -d "$work"/work-*/*/*/environment > /dev/null # executors had their packages from the archive

# --- a release: the lake ----------------------------------------------------------------------------------------------------------
jars=$("$python" -c 'from wordveil.spark.platform.delta import fetched_jars; print(",".join(map(str, fetched_jars())))')
[ -n "$jars" ] || { echo "Delta's jars are not there: run scripts/delta_jars.py" >&2; exit 1; }
package=$("$python" -c 'from wordveil.spark.platform.delta import artifact; print(artifact())')
sql() {
    "$spark_home/bin/spark-sql" --master 'local[1]' --jars "$jars" \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        --conf spark.sql.catalogImplementation=in-memory --conf "spark.sql.warehouse.dir=$work/warehouse" --conf spark.ui.enabled=false \
        -e "$1" 2>> "$work/sql.log"
}
step "the input, a Delta table with its change feed on"
sql "CREATE TABLE delta.\`$work/lake/articles\` USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)
     AS SELECT article, body, concat('agency-', batch) AS agency FROM parquet.\`$here/quickstart/corpus\`"

cat > "$work/release.yaml" <<YAML
format_version: 2
release: news
input: {path: $work/lake/articles, format: delta, changes: feed, id: article, text: body, author: agency, keep: [agency]}
mechanism: {name: tree, epsilon: 8.0, sizes: [20], output: representative, embedding: demo, public: true}
bundle_store: $here/quickstart/bundles
text: {profile: strict, n_max: 64}
key: {file: $work/wordveil.key}
output: {path: $work/lake/wordveil/news, format: delta, public: $work/lake/public/news}
ledger: {path: $work/lake/wordveil/ledger}
budgets: {unit: pure, relation: any_text, record: 5000, on_exceeded: quarantine}
gate: {min_records: 250, max_empty_rate: 0.01, exposes: [presence, edited, withdrawn, kept_changed, "column:agency", gate], quarantine_rate: 0.01}
YAML
"$python" -m wordveil key new "$work/wordveil.key"
"$python" -m wordveil build --config "$work/release.yaml" --json > "$work/build.json"
public_key=$("$python" -m wordveil key fingerprint --file "$work/wordveil.key" --release news --json |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["public_key"])')

# --- the first night, with Delta by --jars ----------------------------------------------------------------------------------------
step "night 1: sanitise"
PYSPARK_PYTHON=./environment/bin/python submit --archives "$archive" --jars "$jars" \
    jobs/sanitise.py --config "$work/release.yaml" --run-id night-1 --json > "$work/night-1.json"
expect night-1 'it["changes"], it["released"]' "('all', 300)"
# What follows runs no Python on the executors, so that it needs no archive.
step "night 1: gate"
submit --jars "$jars" jobs/release.py gate --config "$work/release.yaml" --json > "$work/gate-1.json"
expect gate-1 'it["passed"]' True
step "night 1: publish"
submit --jars "$jars" jobs/release.py publish --config "$work/release.yaml" --json > "$work/publish-1.json"
expect publish-1 'it["manifest"]["records"]' 300
step "night 1: verify"
submit --jars "$jars" jobs/release.py verify --table "$work/lake/public/news" --public-key "$public_key" --json > "$work/verify-1.json"
expect verify-1 'it["verified"], it["pinned"], it["records"]' "(True, True, 300)"
step "night 1: ledger"
submit --jars "$jars" jobs/ledger.py --config "$work/release.yaml" --json > "$work/ledger-1.json"
expect ledger-1 'it[0]["contexts"], it[0]["tokens"]' "(300, 19200)"
step "a gate that fails ends spark-submit with code 3"
code=0
submit --jars "$jars" jobs/release.py gate --config "$work/release.yaml" --set gate.min_records=1000 --json > "$work/failed.json" || code=$?
[ "$code" = 3 ] || { echo "the exit code is $code, not 3" >&2; exit 1; }
expect failed 'it["passed"]' False

# --- the second night, with a rotated key and Delta by --packages -----------------------------------------------------------------
step "an article is edited, one is deleted; the key is rotated"
sql "UPDATE delta.\`$work/lake/articles\` SET body = concat('Corrected. ', body) WHERE article = '007'"
sql "DELETE FROM delta.\`$work/lake/articles\` WHERE article = '008'"
"$python" -m wordveil key rotate "$work/wordveil.key"
step "night 2: sanitise, --packages $package"
PYSPARK_PYTHON=./environment/bin/python submit --archives "$archive" --packages "$package" \
    jobs/sanitise.py --config "$work/release.yaml" --run-id night-2 --json > "$work/night-2.json"
expect night-2 'it["changes"], it["released"], it["withdrawn"]' "('feed', 1, 1)"

# --- a record that must go --------------------------------------------------------------------------------------------------------
step "erase 009, show"
submit --packages "$package" jobs/release.py erase --config "$work/release.yaml" --id 009 --json > "$work/erase.json"
expect erase 'it["withdrawn"], it["gone"], it["publish"]["manifest"]["records"]' "(1, True, 298)"
submit --packages "$package" jobs/release.py show --config "$work/release.yaml" --json > "$work/show.json"
expect show 'it["withdrawn"]["in_public_table"], it["open_runs"]' "(0, [])"
step "night 2: verify, ledger"
submit --packages "$package" jobs/release.py verify --table "$work/lake/public/news" --public-key "$public_key" --json > "$work/verify-2.json"
expect verify-2 'it["verified"], it["records"]' "(True, 298)"
submit --packages "$package" jobs/ledger.py --config "$work/release.yaml" --json > "$work/ledger-2.json"
expect ledger-2 'it[0]["contexts"], it[0]["reserved"]' "(301, 0.0)"
echo "everything worked as docs/deploy.md says"
