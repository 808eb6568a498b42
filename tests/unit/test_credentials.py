"""Credentials in paths, URLs and options are refused, and nothing prints them, however they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.toys import toy_settings
from wordveil.cli.app import main
from wordveil.cli.output import print_traceback
from wordveil.config.load import load_config, parse_config
from wordveil.credentials import HIDDEN, find_credential, hide_credentials, hide_in_value, is_secret_name
from wordveil.errors import ConfigError, Fault, InputError

SECRET = "Zq7canaryZq7"
HALF = "Zq7"

USER_INFO = (
    "s3a://KEY:{}@lake/raw",
    "S3A://KEY:{}@lake/raw",
    "s3a:/KEY:{}@lake/raw",
    "s3a:KEY:{}@lake/raw",
    "s3a:///KEY:{}@lake/raw",
    r"s3a:\\KEY:{}@lake\raw",
    "//KEY:{}@lake/raw",
    "s3a://KEY%3A{}@lake/raw",
    "s3a://KEY:{}%40lake/raw",
    "s3a%3A%2F%2FKEY%3A{}%40lake/raw",
    "s3a%253A%252F%252FKEY%253A{}%2540lake/raw",
    "s3a://KEY:a/{}@lake/raw",
    "s3a://KEY:1/{}@lake/raw",
    "s3a://KEY:a@b/{}@lake/raw",
    "s3a://KEY:a?{}@lake/raw",
    "s3a://{}@lake/raw",
    "s3a://KEY:{}",
    "hdfs://{}@nn:8020/raw",
    "gs://me:{}@lake/raw",
    "abfss://container:{}@account.dfs.core.windows.net/raw",
    "abfss://container%3A{}@account.dfs.core.windows.net/raw",
    "https://me:{}@host/words.vec",
    "https://{}@host/words.vec",
    "jdbc:postgresql://me:{}@host/db",
    "JDBC:PostgreSQL://me:{}@host/db",
    "jdbc:oracle:thin:me/{}@host:1521/db",
    "jdbc:oracle:thin:me/a@{}@//host:1521/db",
)
NAMED = (
    "https://host/words.vec?token={}",
    "https://account.blob.core.windows.net/c/words.vec?sv=2024&SIG={}%2Fx&se=2027",
    "https://lake.s3.amazonaws.com/words.vec?X-Amz-Signature={}",
    "https://host/words.vec?key={}",
    "https://host/words.vec#access_token={}",
    "https://host/words.vec?pass%77ord={}",
    "jdbc:postgresql://host/db?user=me&password={}",
    "jdbc:sqlserver://host:1433;databaseName=db;user=me;PASSWORD={{a;{}}}",
    "jdbc:db2://host:50000/db:user=me;password={};",
    "jdbc:mysql://address=(host=h)(user=me)(password={})/db",
    "PWD={};Database=db",
    "AccountKey={};EndpointSuffix=core.windows.net",
    "-Djavax.net.ssl.keyStorePassword={}",
)
# Only in a value: in a sentence it is unclear where they end.
UNCLEAR = (
    "s3a://KEY:a {}@lake/raw",
    "jdbc:sqlserver://host;user=me;password = {}",
    "jdbc:teradata://host/PASSWORD={}",
    'org.apache.kafka.Login required username="me" password="{}";',
)
HARMLESS = (
    "/lake/raw/ds=2026-11-20/token=3/part-0.parquet",
    "/lake/raw@v2/a:b@c",
    "raw/mails@2026.parquet",
    "s3://lake",
    "s3a://lake/mails@work/ds=1",
    "s3a://lake/a:b@c/signature=1",
    "hdfs://nn:8020/a@b",
    "hdfs://one:8020,two:8020/a@b",
    "hdfs:/team@work/raw",
    "hdfs:///team@work/raw",
    "file:///home/me@work/raw",
    "file:/home/me@work/raw",
    "abfss://container@account.dfs.core.windows.net/raw",
    "ABFSS://container@account.dfs.core.windows.net/raw",
    "wasbs://container@account.blob.core.windows.net/raw",
    "jceks://hdfs@nn:9001/lake.jceks",
    "https://host:8080/words.vec?version=3&design=2&keyword=x",
    "https://[::1]:8080/a@b",
    "jdbc:postgresql://host:5432/db?user=me",
    "jdbc:postgresql://me@host/db",
    "jdbc:sqlserver://host:1433;databaseName=db;user=me@work",
    "jdbc:oracle:thin:@//host:1521/db",
    "jdbc:oracle:thin:@host:1521:db",
    "jdbc:mysql://one:3306,two:3306/db",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "wordfreq:de",
    r"C:\Users\me@work",
)


def test_a_credential_is_found_and_hidden():
    for form in (*USER_INFO, *NAMED, *UNCLEAR):
        value = form.format(SECRET)
        what, shown = find_credential(value), hide_in_value(value)
        assert what, form
        assert HALF not in what + shown, form
        assert HIDDEN in shown, form
        assert hide_in_value(shown) == shown
        fault = str(Fault("input.path", value, "is wrong."))
        assert HALF not in fault, form
        assert hide_credentials(fault) == fault, "what hides one is no credential itself"


def test_a_sentence_is_shown_without_it():
    for form in (*USER_INFO, *NAMED):
        sentence = f"input.path = {form.format(SECRET)}: cannot be read. Name another table."
        shown = hide_credentials(sentence)
        assert HALF not in shown + str(InputError(sentence)), form
        assert shown.startswith("input.path = "), form
        assert shown.endswith("be read. Name another table."), form


def test_what_only_looks_like_one_is_left_as_it_is():
    sentences = [f"input.path = {value}: cannot be read" for value in HARMLESS]
    assert [value for value in HARMLESS if find_credential(value)] == []
    assert [hide_in_value(value) for value in HARMLESS] == [*HARMLESS]
    assert [hide_credentials(sentence) for sentence in sentences] == sentences


def test_names_that_say_where_a_secret_is_are_no_secrets():
    secret = (
        *("password", "ssl.keyStorePassword", "pwd", "accessToken", "oauthToken", "credentials", "sig", "private_key"),
        *("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.session.token"),
        *("spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net", "spark.authenticate.secret"),
        *("spark.hadoop.fs.azure.sas.c.lake.blob.core.windows.net", "spark.executorEnv.AWS_SECRET_ACCESS_KEY"),
        "spark.executorEnv.DB_PASS",
    )
    other = (
        *("tokeniser", "maxTokens", "header", "keyspace", "design", "credentialsFile", "ssl.keystore", "author"),
        *("spark.hadoop.fs.s3a.aws.credentials.provider", "spark.hadoop.hadoop.security.credential.provider.path"),
        *("spark.authenticate.secret.file", "spark.kubernetes.driver.secretKeyRef.WORDVEIL_KEY"),
        *("spark.kubernetes.driver.secrets.spark-auth", "spark.security.credentials.hive.enabled"),
        *("spark.io.encryption.keySizeBits", "spark.hadoop.fs.azure.sas.token.provider.type"),
    )
    assert [name for name in secret if not is_secret_name(name)] == []
    assert [name for name in other if is_secret_name(name)] == []


# One of each way in which a value is told: what finds it is tested above, of all of them.
FORMS = (USER_INFO[2], USER_INFO[7], NAMED[0], UNCLEAR[0])


def settings(**changed: Any) -> dict[str, Any]:
    mechanism = {"name": "tree", "epsilon": 6.0, "embedding": "demo", "public": True}
    return toy_settings(mechanism, key={"file": "wordveil.key"}, **changed)


@pytest.mark.parametrize(
    ("where", "advice"),
    [
        ("input.path", "credential providers"),
        ("input.options.url", "input.options_env: {url: VARIABLE}"),
        ("output.path", "the machine's role"),
        ("output.public", "the machine's role"),
        ("ledger.path", "the machine's role"),
        ("mechanism.embedding", "Download the file"),
        ("mechanism.frequencies", "Download the file"),
        ("bundle_store", "Download the file"),
        ("text.ngrams", "Download the file"),
        ("key.file", "Download the file"),
        ("spark.delta_jars", "spark-submit reads"),
        ("spark.options.spark.hadoop.javax.jdo.option.ConnectionURL", "spark-submit reads"),
        ("inputt", ""),
    ],
)
def test_every_setting_refuses_one_and_no_fault_shows_it(where: str, advice: str):
    for form in FORMS:
        raw: dict[str, Any] = settings()
        section, _, name = where.partition(".")
        if name.startswith(("options.", "spark.")) or where.startswith("spark.options."):
            raw.setdefault(section, {})["options"] = {name.removeprefix("options."): form.format(SECRET)}
        elif name:
            raw.setdefault(section, {})[name] = form.format(SECRET)
        else:
            raw[section] = form.format(SECRET)
        with pytest.raises(ConfigError) as error:
            parse_config(raw, "job.yaml")
        assert f"{where} = " in str(error.value), form
        assert "holds a credential" in str(error.value)
        assert advice in str(error.value)
        assert HALF not in str(error.value), form
        assert HALF not in json.dumps([fault.__dict__ for fault in error.value.faults])


def test_options_named_like_a_secret_are_refused():
    spark = {"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.hadoop.fs.s3a.session.token": 7412369}
    options = {
        "password": SECRET,
        "sslpassword": {"password": SECRET},
        "token": [SECRET],
        "oauthTokenFile": "/run/token",
    }
    raw = settings(spark={"options": spark})
    raw["input"] = {"id": "id", "text": "body", "format": "jdbc", "options": options}
    with pytest.raises(ConfigError) as error:
        parse_config(raw, "job.yaml")
    named = {fault.where for fault in error.value.faults if "seems to hold a secret" in fault.problem}
    wanted = {"input.options.password", "input.options.sslpassword.password", "input.options.token"}
    assert named == {*(f"spark.options.{name}" for name in spark), *wanted}
    assert HALF not in str(error.value)
    assert "7412369" not in str(error.value)


def test_conditions_variables_and_containers_are_no_credentials():
    raw = settings(
        input={
            "path": "abfss://raw@lake.dfs.core.windows.net/mails",
            "format": "csv",
            "columns": "id INT, body STRING, token STRING",
            "id": "id",
            "text": "body",
            "where": "token = 'abc' AND password='x'",
            "options_env": {"password": "LAKE_PASSWORD"},
        },
        spark={"options": {"spark.authenticate.secret.file": "/etc/spark-auth/secret"}},
    )
    assert parse_config(raw, "job.yaml").input.path == "abfss://raw@lake.dfs.core.windows.net/mails"


@pytest.mark.parametrize(
    "text",
    [
        "input: {options: {password: *" + SECRET + "}}",
        "input: {options: {password: !" + SECRET + "}}",
        "input: {options: {password: &a " + SECRET + ", &a: &a 1}}",
        "input: {options: {password: !" + SECRET + "!x y}}",
        f"input: 'password: {SECRET}'",
        f"input: [{{password: {SECRET}}}]",
        f"release: {{password: {SECRET}}}",
        f"spark: {{options: password={SECRET}}}",
        f"s3a://KEY:{SECRET}@lake/raw: 1",
        f"s3a://KEY:{SECRET}@lake/raw: 1\ns3a://KEY:{SECRET}@lake/raw: 2",
        f"mechanism: {{name: 's3a://KEY:{SECRET}@lake/raw'}}",
        f"mechanism: {{name: tree, epsilon: 's3a://KEY:{SECRET}@lake/raw'}}",
        "input: {path: 's3a://KEY:" + 70 * "x" + f"{SECRET}@lake/raw', id: 1, text: 2, version: s3a://KEY:{SECRET}@x}}",
        f"input: {{path: x, version: 'jdbc:oracle:thin:me/{55 * 'x'}{SECRET}@lake'}}",
    ],
)
def test_a_file_that_cannot_be_read_is_not_quoted(text: str, tmp_path: Path):
    file = tmp_path / "job.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(file)
    assert HALF not in str(error.value)
    assert HALF not in json.dumps([fault.__dict__ for fault in error.value.faults])


def run(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    shown = capfd.readouterr()
    return int(ended.value.code or 0), shown.out + shown.err


@pytest.mark.parametrize("command", [["release", "publish"], ["plan", "--json"]])
@pytest.mark.parametrize("form", FORMS)
def test_commands_print_none_of_a_configuration(
    command: list[str], form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    value, report = form.format(SECRET), tmp_path / "report.json"
    in_file, plain = tmp_path / "in_file.yaml", tmp_path / "plain.yaml"
    in_file.write_text(yaml.safe_dump(settings(output={"path": value})))
    plain.write_text(yaml.safe_dump(settings()))
    overrides = [f"output.path={json.dumps(value)}", f"output.path={value}", f"output={{path: '{value}'}}", value]
    overrides += [f"spark.options.password={SECRET}", f"input.options={{password: {SECRET}}}"]
    overrides += [f"input.options.password:{SECRET}", f"{value}=1", f"release.a={value}"]
    for given in (["--config", str(in_file)], *(["--config", str(plain), "--set", one] for one in overrides)):
        code, shown = run([*command, *given, "--report", str(report)], capfd)
        assert code == 2, (given, shown)
        assert HALF not in shown + report.read_text(), given


@pytest.mark.parametrize("form", FORMS)
def test_commands_refuse_paths_with_one(form: str, capfd: pytest.CaptureFixture[str]):
    place = form.format(SECRET)
    for given in (
        ["release", "verify", "--table", place],
        ["release", "verify", "--table", "/lake/public", f"--manifest={place}"],
        ["release", "verify", "--table", "/lake/public", "--report", place],
        ["analytics", "--table", "/lake/public", "--output", place],
        ["ledger", "--ledger", place],
        ["ledger", "--ledger", "/lake/ledger", "--delta-jars", place],
        ["ngrams", "--input", place, "--text", "body", "-o", "models", "--public"],
        ["init", "--from", place],
        ["init", "--from", "/lake/raw", "-o", place],
        ["plan", "--config", place],
        ["plan", "--config", "job.yaml", "--html", place],
        ["evaluate", "--config", "job.yaml", "--out", place],
        ["plan", place],
        [place],
    ):
        code, shown = run(given, capfd)
        assert code == 2, (given, shown)
        assert "holds a credential" in shown
        assert HALF not in shown, given


def test_unexpected_errors_are_shown_without_credentials(capfd: pytest.CaptureFixture[str]):
    print_traceback(RuntimeError(f"no such bucket: s3a://KEY:{SECRET}@lake"))
    shown = capfd.readouterr().err
    assert "no such bucket: s3a://***@lake" in shown
    assert HALF not in shown
