"""Language identifiers and tokenisers of Chinese and Japanese: speed, memory, and how often a short text is mistaken.

* identifiers: py3langid, and lingua in both of its modes where it is installed (lingua-language-detector). English
  texts are those of four public data sets of shared/data, other languages the sentences below, cut to their first
  words. A text counts as another language where some language is `margin` times as probable as English.
* tokenisers: rjieba, jieba, SudachiPy, fugashi (with unidic-lite) and Janome where they are installed; runs without
  punctuation, as wordveil.text.tokeniser cuts them.
* coverage: the share of the same texts, those of five words or more, of which the embedding `glove` lacks a share of
  the words.

Each row of the first two is measured in a process of its own, on one thread.

    python research/benchmarks/languages.py [--part coverage] [--smallest]

Writes research/results/languages.json and prints tables.
"""

# ruff: noqa: RUF001 - sentences of other languages have their own letters

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from common import DATA, RESULTS, embedding, machine, make_parser, save_results
from wordveil.text.tokeniser import Tokeniser, fold_words

MARGINS = (5, 10, 20, 50, 100)
CUTS = (1, 2, 3, 4, 6)
UNKNOWN_SHARES = (1 / 4, 1 / 3, 2 / 5, 1 / 2)
DATASETS = ("sst2", "trec6", "snips7", "mr")
# The same six sentences in fourteen languages.
SENTENCES = {
    "de": (
        "Der Zug nach Hamburg hatte gestern Abend wieder eine halbe Stunde Verspätung.",
        "Meine Bestellung ist nicht angekommen und niemand antwortet auf meine Nachrichten.",
        "Wir suchen zum nächsten Monat eine größere Wohnung in der Nähe des Bahnhofs.",
        "Das Essen war kalt, aber die Bedienung hat sich sehr freundlich entschuldigt.",
        "Können Sie mir bitte sagen, wann das Büro morgen öffnet?",
        "Im Winter ist der See manchmal so fest gefroren, dass man darauf laufen kann.",
    ),
    "fr": (
        "Le train pour Lyon est parti avec une demi-heure de retard hier soir.",
        "Ma commande n'est pas arrivée et personne ne répond à mes messages.",
        "Nous cherchons un appartement plus grand près de la gare pour le mois prochain.",
        "Le repas était froid, mais le serveur s'est excusé très gentiment.",
        "Pouvez-vous me dire à quelle heure le bureau ouvre demain matin ?",
        "En hiver, le lac est parfois assez gelé pour qu'on puisse y marcher.",
    ),
    "es": (
        "El tren a Sevilla salió anoche con media hora de retraso.",
        "Mi pedido no ha llegado y nadie contesta mis mensajes.",
        "Buscamos un piso más grande cerca de la estación para el mes que viene.",
        "La comida estaba fría, pero el camarero se disculpó con mucha amabilidad.",
        "¿Puede decirme a qué hora abre la oficina mañana por la mañana?",
        "En invierno el lago está a veces tan helado que se puede caminar sobre él.",
    ),
    "it": (
        "Il treno per Milano è partito ieri sera con mezz'ora di ritardo.",
        "Il mio ordine non è arrivato e nessuno risponde ai miei messaggi.",
        "Cerchiamo un appartamento più grande vicino alla stazione per il mese prossimo.",
        "Il cibo era freddo, ma il cameriere si è scusato con molta gentilezza.",
        "Può dirmi a che ora apre domani mattina l'ufficio?",
        "D'inverno il lago è a volte così ghiacciato che ci si può camminare sopra.",
    ),
    "nl": (
        "De trein naar Utrecht had gisteravond weer een half uur vertraging.",
        "Mijn bestelling is niet aangekomen en niemand antwoordt op mijn berichten.",
        "Wij zoeken voor volgende maand een groter huis in de buurt van het station.",
        "Het eten was koud, maar de ober heeft zich vriendelijk verontschuldigd.",
        "Kunt u mij zeggen hoe laat het kantoor morgen opengaat?",
        "In de winter is het meer soms zo bevroren dat je erop kunt lopen.",
    ),
    "pl": (
        "Pociąg do Krakowa miał wczoraj wieczorem znowu pół godziny opóźnienia.",
        "Moje zamówienie nie dotarło i nikt nie odpowiada na moje wiadomości.",
        "Szukamy na przyszły miesiąc większego mieszkania w pobliżu dworca.",
        "Jedzenie było zimne, ale kelner bardzo uprzejmie przeprosił.",
        "Czy może mi pan powiedzieć, o której jutro otwierają biuro?",
        "Zimą jezioro jest czasem tak zamarznięte, że można po nim chodzić.",
    ),
    "pt": (
        "O comboio para o Porto saiu ontem à noite com meia hora de atraso.",
        "A minha encomenda não chegou e ninguém responde às minhas mensagens.",
        "Procuramos um apartamento maior perto da estação para o próximo mês.",
        "A comida estava fria, mas o empregado pediu desculpa com muita simpatia.",
        "Pode dizer-me a que horas abre o escritório amanhã de manhã?",
        "No inverno o lago fica às vezes tão gelado que se pode andar sobre ele.",
    ),
    "tr": (
        "Ankara treni dün akşam yine yarım saat gecikti.",
        "Siparişim gelmedi ve kimse mesajlarıma cevap vermiyor.",
        "Gelecek ay için istasyona yakın daha büyük bir ev arıyoruz.",
        "Yemek soğuktu ama garson çok kibarca özür diledi.",
        "Ofisin yarın saat kaçta açılacağını söyleyebilir misiniz?",
        "Kışın göl bazen o kadar donar ki üzerinde yürünebilir.",
    ),
    "ru": (
        "Поезд в Москву вчера вечером опять опоздал на полчаса.",
        "Мой заказ не пришёл, и никто не отвечает на мои сообщения.",
        "Мы ищем на следующий месяц квартиру побольше недалеко от вокзала.",
        "Еда была холодной, но официант очень вежливо извинился.",
        "Скажите, пожалуйста, во сколько завтра открывается контора?",
        "Зимой озеро иногда замерзает так крепко, что по нему можно ходить.",
    ),
    "ar": (
        "تأخر القطار إلى القاهرة مساء أمس نصف ساعة مرة أخرى.",
        "لم يصل طلبي ولا أحد يرد على رسائلي.",
        "نبحث عن شقة أكبر بالقرب من المحطة للشهر القادم.",
        "كان الطعام باردا لكن النادل اعتذر بلطف شديد.",
        "هل يمكنك أن تخبرني متى يفتح المكتب غدا؟",
        "في الشتاء تتجمد البحيرة أحيانا حتى يمكن المشي عليها.",
    ),
    "ko": (
        "부산으로 가는 기차가 어제 저녁에 또 삼십 분 늦었습니다.",
        "주문한 물건이 오지 않았고 아무도 제 메시지에 답하지 않습니다.",
        "다음 달에 역 근처에 있는 더 큰 집을 찾고 있습니다.",
        "음식은 차가웠지만 종업원이 아주 친절하게 사과했습니다.",
        "내일 사무실이 몇 시에 여는지 말씀해 주시겠어요?",
        "겨울에는 호수가 꽁꽁 얼어서 그 위를 걸을 수 있을 때도 있습니다.",
    ),
    "sv": (
        "Tåget till Göteborg var en halvtimme försenat igen i går kväll.",
        "Min beställning har inte kommit och ingen svarar på mina meddelanden.",
        "Vi söker en större lägenhet nära stationen till nästa månad.",
        "Maten var kall men servitören bad mycket vänligt om ursäkt.",
        "Kan du säga mig när kontoret öppnar i morgon?",
        "På vintern är sjön ibland så frusen att man kan gå på den.",
    ),
    "id": (
        "Kereta ke Bandung terlambat setengah jam lagi tadi malam.",
        "Pesanan saya belum datang dan tidak ada yang membalas pesan saya.",
        "Kami mencari rumah yang lebih besar di dekat stasiun untuk bulan depan.",
        "Makanannya dingin, tetapi pelayannya meminta maaf dengan sangat ramah.",
        "Bisakah Anda memberi tahu saya jam berapa kantor buka besok?",
        "Pada musim hujan danau itu kadang meluap sampai ke jalan raya.",
    ),
    "hi": (
        "दिल्ली जाने वाली ट्रेन कल शाम फिर आधा घंटा देर से आई।",
        "मेरा सामान नहीं आया और कोई मेरे संदेशों का जवाब नहीं देता।",
        "हम अगले महीने के लिए स्टेशन के पास बड़ा घर ढूँढ रहे हैं।",
        "खाना ठंडा था लेकिन बैरे ने बहुत विनम्रता से माफ़ी माँगी।",
        "क्या आप बता सकते हैं कि कल दफ़्तर कितने बजे खुलेगा?",
        "सर्दियों में झील कभी कभी इतनी जम जाती है कि उस पर चल सकते हैं।",
    ),
}
CHINESE = (
    "我们在北京大学学习自然语言处理，昨天下午天气很好，所以大家一起去公园散步。"
    "这家公司发布了新的手机产品，价格比去年便宜了不少。"
)
JAPANESE = (
    "昨日は天気が良かったので、友達と一緒に公園を散歩しました。"
    "この会社は新しい携帯電話を発表しました。"
    "コーヒーを飲みながら新聞を読むのが好きです。"
)
Ratio = Callable[[str], float]
"""How probable English is, over the most probable language."""


def load_py3langid() -> Ratio:
    """Load the identifier of wordveil.text.language."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def ratio(text: str) -> float:
        ranked = model.rank(text)
        return next(share for label, share in ranked if label == "en") / ranked[0][1]

    return ratio


def load_lingua(*, low: bool) -> Ratio:
    """lingua, of all its languages; ``low``: its mode of low accuracy."""
    from lingua import Language, LanguageDetectorBuilder

    builder = LanguageDetectorBuilder.from_all_languages()
    model = (builder.with_low_accuracy_mode() if low else builder).build()

    def ratio(text: str) -> float:
        found = model.compute_language_confidence_values(text)
        own = next(item.value for item in found if item.language == Language.ENGLISH)
        return own / found[0].value if found[0].value else 1.0

    return ratio


IDENTIFIERS: dict[str, tuple[str, Callable[[], Ratio]]] = {
    "py3langid": ("py3langid", load_py3langid),
    "lingua, low accuracy": ("lingua", lambda: load_lingua(low=True)),
    "lingua": ("lingua", lambda: load_lingua(low=False)),
}


def load_rjieba() -> Callable[[str], Any]:
    """As wordveil.text.tokeniser has it."""
    import rjieba

    return lambda run: rjieba.cut(run, True)


def load_jieba() -> Callable[[str], Any]:
    """jieba, in Python."""
    import jieba

    jieba.setLogLevel(60)
    return jieba.lcut


def load_sudachi() -> Callable[[str], Any]:
    """As wordveil.text.tokeniser has it."""
    from sudachipy import Dictionary, SplitMode

    tokeniser = Dictionary(dict="small").tokenizer(mode=SplitMode.A)
    return lambda run: [word.surface() for word in tokeniser.tokenize(run)]


def load_fugashi() -> Callable[[str], Any]:
    """MeCab with unidic-lite."""
    import fugashi

    tagger = fugashi.Tagger("-Owakati")
    return lambda run: tagger.parse(run).split()


def load_janome() -> Callable[[str], Any]:
    """Janome, in Python."""
    from janome.tokenizer import Tokenizer

    tokeniser = Tokenizer(wakati=True)
    return lambda run: list(tokeniser.tokenize(run))


TOKENISERS: dict[str, tuple[str, str, Callable[[], Callable[[str], Any]]]] = {
    "rjieba": ("rjieba", CHINESE, load_rjieba),
    "jieba": ("jieba", CHINESE, load_jieba),
    "SudachiPy, small": ("sudachidict_small", JAPANESE, load_sudachi),
    "fugashi, unidic-lite": ("fugashi", JAPANESE, load_fugashi),
    "Janome": ("janome", JAPANESE, load_janome),
}


def resident() -> float:
    """Most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def read_texts(name: str, count: int) -> list[str]:
    """Read texts of a data set, evenly spread."""
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for _, line in zip(range(20_000), stream, strict=False)]
    return texts[:: max(1, len(texts) // count)][:count]


def rates(ratios: list[float]) -> dict[str, float]:
    """Return the share that is called another language, by margin."""
    return {str(margin): sum(ratio * margin < 1 for ratio in ratios) / max(1, len(ratios)) for margin in MARGINS}


def measure_identifier(name: str, count: int) -> dict[str, Any]:
    """Measure one identifier, in this process."""
    texts = [text for dataset in DATASETS for text in read_texts(dataset, count)]
    before, started = resident(), time.perf_counter()
    ratio = IDENTIFIERS[name][1]()
    ratio("hello")
    loaded, started = time.perf_counter() - started, time.perf_counter()
    ratios = [ratio(text) for text in texts]
    seconds = time.perf_counter() - started
    groups = {"1 to 3": (1, 3), "4 to 7": (4, 7), "8 to 14": (8, 14), "15 or more": (15, 10**6)}
    english: dict[str, Any] = {}
    for group, (least, most) in groups.items():
        found = [value for value, text in zip(ratios, texts, strict=True) if least <= len(text.split()) <= most]
        english[group] = {"texts": len(found), "called other": rates(found)}
    others = {}
    for cut in (*CUTS, None):
        cuts = [ratio(" ".join(line.split()[:cut])) for lines in SENTENCES.values() for line in lines]
        others["all" if cut is None else str(cut)] = rates(cuts)
    return {
        "load_seconds": loaded,
        "memory_mib": resident() - before,
        "texts_per_second": len(texts) / seconds,
        "characters": sum(map(len, texts)) / len(texts),
        "english": english,
        "others": others,
    }


def measure_tokeniser(name: str, seconds: float) -> dict[str, Any]:
    """Measure one tokeniser, in this process."""
    _, text, load = TOKENISERS[name]
    before, started = resident(), time.perf_counter()
    cut = load()
    cut(text)
    loaded = time.perf_counter() - started
    runs = [run for run in re.split("[。，、]", text) if run]
    words, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        words += sum(len(cut(run)) for run in runs)
    speed = words / (time.perf_counter() - started)
    return {"load_seconds": loaded, "memory_mib": resident() - before, "words_per_second": speed}


def measure_apart(kind: str, name: str, amount: float) -> dict[str, Any]:
    """Measure the same in a process of its own, with one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--measure", kind, name, str(amount)]
    done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_coverage(count: int) -> dict[str, Any]:
    """Measure the share of poorly covered texts of five words or more, by share of unknown words, for each source."""
    known, cutter = embedding.load("glove").words, Tokeniser()

    def measure(texts: list[str]) -> dict[str, float]:
        cut = cutter.cut_words(cutter.normalise(pa.array(texts, pa.string())))
        is_unknown = pc.invert(pc.is_in(fold_words(cut.words), value_set=known)).to_numpy(zero_copy_only=False)
        unknown = np.diff(np.concatenate([[0], np.cumsum(is_unknown)])[cut.offsets])
        words = np.diff(cut.offsets)
        is_long = words >= 5
        return {f"{share:.2f}": float(np.mean((unknown >= words * share)[is_long])) for share in UNKNOWN_SHARES}

    english = {name: measure(read_texts(name, count)) for name in DATASETS}
    others = {language: measure(sentences) for language, sentences in SENTENCES.items()}
    return {"english": english, "others": others, "all_others": measure([*chain(*SENTENCES.values())])}


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console()
    table = Table("identifier", "load s", "MiB", "texts/s", "margin", "English called other", "others found", title="")
    for name, row in results["identifiers"].items():
        for margin in map(str, MARGINS):
            english = ", ".join(
                f"{group}: {part['called other'][margin]:.2%}" for group, part in row["english"].items()
            )
            others = ", ".join(f"{cut}: {part[margin]:.0%}" for cut, part in row["others"].items())
            cost = (f"{row['load_seconds']:.1f}", f"{row['memory_mib']:.0f}", f"{row['texts_per_second']:,.0f}")
            table.add_row(name, *cost, margin, english, others)
    console.print(table)
    table = Table("tokeniser", "load s", "MiB", "words/s")
    for name, row in results["tokenisers"].items():
        table.add_row(name, f"{row['load_seconds']:.1f}", f"{row['memory_mib']:.0f}", f"{row['words_per_second']:,.0f}")
    console.print(table)
    coverage = results["coverage"]
    table = Table("texts of five words or more", *(f"{share:.2f} unknown" for share in UNKNOWN_SHARES))
    for name, shares in {**coverage["english"], **coverage["others"], "all others": coverage["all_others"]}.items():
        table.add_row(name, *(f"{share:.1%}" for share in shares.values()))
    console.print(table)


def main() -> None:
    """Measure what is installed, one after the other."""
    parser = make_parser(__doc__)
    parser.add_argument("--part", choices=["coverage"], help="measure this alone, and keep the rest of the results")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        kind, name, amount = chosen.measure
        found = (
            measure_identifier(name, int(float(amount)))
            if kind == "identifier"
            else measure_tokeniser(name, float(amount))
        )
        print(json.dumps(found))
        return
    count, seconds = (50, 0.01) if chosen.smallest else (600, 2.0)
    coverage = measure_coverage(50 if chosen.smallest else 2000)
    if chosen.part:
        results = {**json.loads((RESULTS / "languages.json").read_text("utf-8")), "coverage": coverage}
        save_results("languages", results, smallest=chosen.smallest)
        show(results)
        return
    results = {
        "machine": machine(),
        "identifiers": {
            name: measure_apart("identifier", name, count)
            for name, (module, _) in IDENTIFIERS.items()
            if find_spec(module)
        },
        "tokenisers": {
            name: measure_apart("tokeniser", name, seconds)
            for name, (module, *_) in TOKENISERS.items()
            if find_spec(module)
        },
        "coverage": coverage,
    }
    save_results("languages", results, smallest=chosen.smallest)
    show(results)


if __name__ == "__main__":
    main()
