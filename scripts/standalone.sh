#!/bin/sh
# Runs the quickstart's corpus on a standalone Spark cluster on this machine, as docs/operations.md describes it: a master and two
# workers from the pip installation, authentication and encryption on, and executors whose Python packages come as an archive.
#   make quickstart && scripts/standalone.sh
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
    rm -rf "$work"
}
trap stop EXIT INT TERM

[ -f build/wordveil-environment.tar.gz ] || PYTHON=$python scripts/pack.sh

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
PYSPARK_DRIVER_PYTHON=$python PYSPARK_PYTHON=./environment/bin/python SPARK_LOCAL_DIRS=$work/scratch-driver \
    "$spark_home/bin/spark-submit" --master "$master" --archives "$here/build/wordveil-environment.tar.gz#environment" \
    jobs/sanitise.py --config conf/quickstart.yaml --set "output.path=$work/out" --set spark.master=null "$@"
echo "executors had their Python packages from:"
ls -d "$work"/work-*/*/*/environment
