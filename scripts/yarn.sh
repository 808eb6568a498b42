#!/bin/sh
# Runs what docs/deploy.md says of YARN, on this machine: a HDFS and a YARN of one node each, the one-shot job and a night of a
# release whose tables lie on HDFS, in client mode. Hadoop's servers come by Ivy (45 MB, once).
#   make quickstart && scripts/yarn.sh          some ten minutes on two cores
# KEEP=1 leaves what it made where it says.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd)
python=$here/.venv/bin/python
spark_home=$("$python" -c 'import pyspark; print(pyspark.__path__[0])')
hadoop=$("$python" -c 'import pyspark, pathlib; print(next(pathlib.Path(pyspark.__path__[0], "jars").glob("hadoop-client-api-*.jar")).stem.rsplit("-", 1)[1])')
ivy=$here/build/hadoop
work=$(mktemp -d)
started=""
stop() {
    for process in $started; do kill "$process" 2>/dev/null || true; done
    if [ -n "${KEEP:-}" ]; then echo "kept: $work"; else sleep 2; rm -rf "$work"; fi
}
trap stop EXIT INT TERM

[ -f quickstart/job.yaml ] || { echo "run 'make quickstart' first: it makes the articles, a key and the job" >&2; exit 2; }
[ -f build/wordveil-environment.tar.gz ] || PYTHON=$python scripts/pack.sh
step() { echo "== $*" >&2; }
umask 077

# --- HDFS and YARN ----------------------------------------------------------------------------------------------------------------
export SPARK_HOME="$spark_home" SPARK_LOCAL_IP=127.0.0.1 PYSPARK_DRIVER_PYTHON="$python"
servers=org.apache.hadoop:hadoop-client-minicluster:$hadoop
if [ ! -f "$ivy/jars/org.apache.hadoop_hadoop-client-minicluster-$hadoop.jar" ]; then
    step "fetching Hadoop's servers"
    echo 'print("fetched")' > "$work/fetch.py"
    "$spark_home/bin/spark-submit" --master 'local[1]' --conf spark.jars.ivy="$ivy" --conf spark.ui.enabled=false \
        --packages "$servers,org.bouncycastle:bcprov-jdk18on:1.78.1,org.bouncycastle:bcpkix-jdk18on:1.78.1,javax.xml.bind:jaxb-api:2.3.1,org.glassfish.jaxb:jaxb-runtime:2.3.9" \
        --exclude-packages org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime "$work/fetch.py" > "$work/fetch.log" 2>&1
fi
conf=$work/conf
mkdir "$conf"
property() { echo "<property><name>$1</name><value>$2</value></property>"; }
{ echo '<configuration>'; property fs.defaultFS hdfs://127.0.0.1:8020; property hadoop.tmp.dir "$work/data"; echo '</configuration>'; } > "$conf/core-site.xml"
{
    echo '<configuration>'
    property dfs.replication 1
    property dfs.namenode.http-address 127.0.0.1:0
    for name in address http.address ipc.address; do property "dfs.datanode.$name" 127.0.0.1:0; done
    echo '</configuration>'
} > "$conf/hdfs-site.xml"
{
    echo '<configuration>'
    property yarn.resourcemanager.hostname 127.0.0.1
    property yarn.nodemanager.resource.memory-mb 5120
    property yarn.nodemanager.resource.cpu-vcores 4
    property yarn.scheduler.minimum-allocation-mb 256
    property yarn.nodemanager.vmem-check-enabled false
    property yarn.nodemanager.disk-health-checker.enable false
    property yarn.nodemanager.local-dirs "$work/nm"
    property yarn.nodemanager.log-dirs "$work/nm-logs"
    echo '</configuration>'
} > "$conf/yarn-site.xml"
{
    echo '<configuration>'
    property yarn.scheduler.capacity.root.queues default
    property yarn.scheduler.capacity.root.default.capacity 100
    property yarn.scheduler.capacity.maximum-am-resource-percent 0.8
    echo '</configuration>'
} > "$conf/capacity-scheduler.xml"
cp lib/wordveil/data/log4j2.properties "$conf"
# The three options of docs/deploy.md; YARN itself makes the secret, one for each application.
cat > "$conf/spark-defaults.conf" <<CONF
spark.authenticate true
spark.network.crypto.enabled true
spark.io.encryption.enabled true
spark.yarn.jars local:$spark_home/jars/*
spark.executor.instances 2
spark.executor.memory 512m
spark.executor.memoryOverhead 512m
spark.yarn.am.memory 512m
spark.driver.memory 1g
CONF
export HADOOP_CONF_DIR="$conf" YARN_CONF_DIR="$conf" SPARK_CONF_DIR="$conf"
server() {
    exec java --add-opens java.base/java.lang=ALL-UNNAMED -Xmx400m -Dlog4j2.configurationFile="file:$conf/log4j2.properties" \
        -Dhadoop.log.dir="$work/logs" -Dyarn.home.dir="$work" -cp "$conf:$ivy/jars/*:$spark_home/jars/*" "org.apache.hadoop.$1" $2
}
(server hdfs.server.namenode.NameNode "-format -force") > "$work/format.log" 2>&1
for name in hdfs.server.namenode.NameNode hdfs.server.datanode.DataNode yarn.server.resourcemanager.ResourceManager yarn.server.nodemanager.NodeManager; do
    (server "$name" "") > "$work/${name##*.}.log" 2>&1 &
    started="$started $!"
done
hdfs() { "$spark_home/bin/spark-class" org.apache.hadoop.fs.FsShell "$@" 2>> "$work/hdfs.log"; }
for _ in $(seq 60); do hdfs -mkdir -p /lake && break || sleep 2; done
step "the articles and the executors' environment, on HDFS"
hdfs -mkdir -p /wordveil
hdfs -put "$here/quickstart/corpus" /lake/articles
hdfs -put "$here/build/wordveil-environment.tar.gz" /wordveil/environment.tar.gz
archive=hdfs:///wordveil/environment.tar.gz#environment

submit() { "$spark_home/bin/spark-submit" --master yarn "$@"; }
value() { "$python" -c 'import json, sys; it = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/$1.json" "$2"; }
expect() {
    found=$(value "$1" "$2")
    [ "$found" = "$3" ] || { echo "$1: $2 is $found, not $3" >&2; exit 1; }
}

# --- the one-shot job -------------------------------------------------------------------------------------------------------------
step "one-shot job, client mode"
PYSPARK_PYTHON=./environment/bin/python submit --deploy-mode client --archives "$archive" \
    jobs/sanitise.py --config quickstart/job.yaml --set input.path=hdfs:///lake/articles --set output.path=hdfs:///lake/sanitised/run-1 \
    --set spark.master=null --json > "$work/client.json"
expect client 'it["records"], it["released"]' "(300, 300)"

# --- a night of a release on HDFS -------------------------------------------------------------------------------------------------
jars=$("$python" -c 'from wordveil.spark.platform.delta import fetched_jars; print(",".join(map(str, fetched_jars())))')
[ -n "$jars" ] || { echo "Delta's jars are not there: run scripts/delta_jars.py" >&2; exit 1; }
step "the input, a Delta table on HDFS"
"$spark_home/bin/spark-sql" --master 'local[1]' --jars "$jars" \
    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
    --conf spark.sql.catalogImplementation=in-memory --conf "spark.sql.warehouse.dir=$work/warehouse" --conf spark.ui.enabled=false \
    -e "CREATE TABLE delta.\`hdfs:///lake/tickets\` USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)
        AS SELECT article, body FROM parquet.\`hdfs:///lake/articles\`" 2>> "$work/sql.log"
cat > "$work/release.yaml" <<YAML
format_version: 2
release: news
input: {path: "hdfs:///lake/tickets", format: delta, changes: feed, id: article, text: body}
mechanism: {name: tree, epsilon: 8.0, sizes: [20], output: representative, embedding: demo, public: true}
bundle_store: $here/quickstart/bundles
text: {profile: strict, n_max: 64}
key: {file: $work/wordveil.key}
output: {path: "hdfs:///lake/wordveil/news", format: delta, public: "hdfs:///lake/public/news"}
ledger: {path: "hdfs:///lake/wordveil/ledger"}
gate: {min_records: 250}
YAML
"$python" -m wordveil key new "$work/wordveil.key"
"$python" -m wordveil build --config "$work/release.yaml" --json > "$work/build.json"
public_key=$("$python" -m wordveil key fingerprint --file "$work/wordveil.key" --release news --json |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["public_key"])')
step "sanitise"
PYSPARK_PYTHON=./environment/bin/python submit --archives "$archive" --jars "$jars" \
    jobs/sanitise.py --config "$work/release.yaml" --run-id night-1 --json > "$work/night.json"
expect night 'it["changes"], it["released"]' "('all', 300)"
for command in gate publish; do
    step "$command"
    submit --jars "$jars" jobs/release.py "$command" --config "$work/release.yaml" --json > "$work/$command.json"
done
expect gate 'it["passed"]' True
step "verify, ledger"
submit --jars "$jars" jobs/release.py verify --table hdfs:///lake/public/news --public-key "$public_key" --json > "$work/verify.json"
expect verify 'it["verified"], it["records"]' "(True, 300)"
submit --jars "$jars" jobs/ledger.py --config "$work/release.yaml" --json > "$work/ledger.json"
expect ledger 'it[0]["contexts"], it[0]["reserved"]' "(300, 0.0)"
step "two runs at once: one waits for the other's lease"
for night in night-2 night-3; do
    "$python" -m wordveil sanitise --config "$work/release.yaml" --set 'spark.master=local[1]' --run-id "$night" --json \
        > "$work/$night.json" 2> "$work/$night.log" &
    runs="${runs:-} $!"
done
for run in $runs; do wait "$run"; done
grep -q "waiting for another run" "$work/night-2.log" "$work/night-3.log" || { echo "none of two runs waited" >&2; exit 1; }
for night in night-2 night-3; do expect "$night" 'it["records"]' 0; done
echo "everything worked as docs/deploy.md says"
