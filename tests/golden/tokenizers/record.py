"""Trains two small tokenizers, varies their components, and records what `tokenizers` makes of a list of strings.

Usage: record.py OUT_DIRECTORY     (needs tokenizers 0.23.3)

Writes byte_level.json and byte_fallback.json (tokenizer.json files) and variants.jsonl.gz, one line for each variant:
{"name", "base", "patch", "cases": [[text, ids without special tokens, ids with them, decoded, decoded without special
tokens]], "decodes": [[ids, decoded, decoded without special tokens]]}. "patch" is a JSON merge patch of the base.
"""
import gzip
import json
import random
import sys

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

CURATED = [
    "", " ", "  ", "   a", "a   ", "\n", "\n\n \n", "\t\ttab", "Hello world", " Hello  world ", "hello, world! 3 + 4 = 7",
    "I'm can't WE'LL they've you'd he's IT'S", "1234567890", "3.14159 and 1,000,000", "x1y22z333", "² ½ Ⅷ ٣٤٥ ৪ 四",
    "naïve café 삼겹살 🦙 👩‍👩‍👧 ďábelské \u0301 tab\tend", "Straße İstanbul ΣΑΣ ﬁne", "e\u0301 vs é, o\u0302\u0323 vs ộ",
    "日本語のテキスト", "中文，标点。", "Русский текст", "العربية نص", "עברית", "हिन्दी", "ไทย", "ქართული", "한국어 조선말",
    "a\u00a0b\u2003c\u3000d\u200be\u180ef\ufefff", "line\r\nline\rline\u2028para\u2029", "\x00\x01\x7f\x80\x9f", "\ufffd\U0010ffff",
    "def f(x):\n    return x ** 2  # squares\n", "<s>", "<s>Hello</s>", "<s> Hello </s> x", " <mask> ", "a <mask> b", "a<mask>b",
    "<word>", "a <word> b", "a<word>b", "a<word> b", "é<word>!", "<wo", "<word><word>", "<wordy>", "  <wordy>\t\nnext",
    "x  <left>  y", "x  <right>  y", "x  <both>  y", "<left><right>  <both> ", "ÉTÉ", "éTé été", "E\u0301TE\u0301",
    "<0x41><0xE2>", "▁", "▁▁a", "a▁b ▁ c", "Ġ Ċ Ł", "!!!???...", "a-b_c/d\\e", "(parens) [brackets] {braces}", "#hash @at $5 €10",
    "🇫🇷🏳️‍🌈", "ﷺ", "Ａｆｕｌｌ", "ǆ Ǆ ǅ", "A\u030a Å Å", "\u1100\u1161\u11a8 각", "aaaaaaaaaaaaaaaa", "the the the", " \n \n ",
]


def random_texts(rng, count):
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x6FF), (0x900, 0x97F),
              (0x1100, 0x11FF), (0x2000, 0x206F), (0x3040, 0x30FF), (0x4E00, 0x4E7F), (0xAC00, 0xAC7F), (0x1F600, 0x1F64F)]
    pieces = ["<s>", "</s>", "<word>", "<left>", "<right>", "<both>", "<mask>", " ", "  ", "\n", "the", "12", "'s", "▁", "été"]
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 12)):
            if rng.random() < 0.4:
                text += rng.choice(pieces)
            else:
                low, high = rng.choice(ranges)
                text += "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 4)))
        texts.append(text)
    return texts


def corpus():
    words = ("the quick brown fox jumps over the lazy dog and hello world to tokenize these words in many small pieces that "
             "return squares of numbers café naïve été straße 日本語 日本 中文 русский текст العربية 한국어 🦙 🙂 " * 1).split(" ")
    rng = random.Random(1)
    lines = [" ".join(rng.choice(words) for _ in range(12)) for _ in range(400)]
    return lines + [text for text in CURATED if "<" not in text] * 3


def added(id_, content, **flags):
    return {"id": id_, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


def train_byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    # The alphabet is what the corpus has, so some bytes have no token.
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=520, show_progress=False))
    return json.loads(tokenizer.to_str())


def train_byte_fallback():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=640, special_tokens=specials, limit_alphabet=60, show_progress=False))
    document = json.loads(tokenizer.to_str())
    document["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    # The bytes are no added tokens in real files, and old files have merges as one string.
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    return document


def with_added_tokens(document):
    next_id = max(document["model"]["vocab"].values()) + 1
    extra = [
        ("<s>", {"special": True}), ("</s>", {"special": True}), ("<mask>", {"special": True, "lstrip": True}),
        ("<word>", {"single_word": True}), ("<wordy>", {}), ("<left>", {"lstrip": True}), ("<right>", {"rstrip": True}),
        ("<both>", {"lstrip": True, "rstrip": True}), ("été", {"normalized": True}), ("foo bar", {"normalized": True})]
    there = {token["content"] for token in document["added_tokens"]}
    for content, flags in extra:
        if content not in there:
            document["added_tokens"].append(added(next_id, content, **flags))
            next_id += 1
    bos = next(token["id"] for token in document["added_tokens"] if token["content"] == "<s>")
    eos = next(token["id"] for token in document["added_tokens"] if token["content"] == "</s>")
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [bos], "tokens": ["<s>"]}}}
    return document, bos, eos


def merge(target, patch):
    """JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def variants(bos, eos):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    gpt2 = {**byte_level, "use_regex": True}
    sequence = lambda *parts: {"type": "Sequence", "pretokenizers": list(parts)}
    split = lambda pattern, behavior, invert=False: {
        "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    replace_space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    metaspace = lambda scheme, cut=True: {
        "type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
    gemma_decoder = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    pre = lambda value: {"pre_tokenizer": value}
    norm = lambda value: {"normalizer": value}
    both_ends = {"type": "TemplateProcessing",
                 "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                            {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                 "special_tokens": {"</s>": {"id": "</s>", "ids": [eos["byte_level"]], "tokens": ["</s>"]}}}
    return [
        ("llama3", "byte_level", {}),
        ("llama3_ignore_merges", "byte_level", {"model": {"ignore_merges": True}}),
        ("gpt2", "byte_level", pre(gpt2)),
        ("gpt2_prefix_space", "byte_level", pre({**gpt2, "add_prefix_space": True})),
        ("digits_gpt2", "byte_level", pre(sequence({"type": "Digits", "individual_digits": True}, gpt2))),
        ("digits_together", "byte_level", pre(sequence({"type": "Digits", "individual_digits": False}, gpt2))),
        ("qwen2_nfc", "byte_level", {**norm({"type": "NFC"}),
                                     **pre(sequence(split({"Regex": QWEN2}, "Isolated"), byte_level))}),
        ("nfd", "byte_level", norm({"type": "NFD"})),
        ("nfkc", "byte_level", norm({"type": "NFKC"})),
        ("nfkd_lowercase_strip", "byte_level", norm({"type": "Sequence", "normalizers": [
            {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "Strip", "strip_left": True, "strip_right": True}]})),
        ("strip_right", "byte_level", norm({"type": "Strip", "strip_left": False, "strip_right": True})),
        ("replace_regex", "byte_level", norm({"type": "Replace", "pattern": {"Regex": "[0-9]+|o+"}, "content": "#"})),
        ("split_removed", "byte_level", pre(sequence(split({"String": "o"}, "Removed"), byte_level))),
        ("split_previous", "byte_level", pre(sequence(split({"Regex": "\\s"}, "MergedWithPrevious"), byte_level))),
        ("split_next", "byte_level", pre(sequence(split({"Regex": "\\s"}, "MergedWithNext"), byte_level))),
        ("split_contiguous", "byte_level", pre(sequence(split({"Regex": "\\s"}, "Contiguous"), byte_level))),
        ("split_invert", "byte_level", pre(sequence(split({"Regex": "\\w+"}, "Removed", True), byte_level))),
        ("split_invert_previous", "byte_level",
         pre(sequence(split({"Regex": "\\w+"}, "MergedWithPrevious", True), byte_level))),
        ("punctuation", "byte_level", pre(sequence({"type": "Punctuation", "behavior": "Isolated"}, byte_level))),
        ("whitespace", "byte_level", pre(sequence({"type": "Whitespace"}, byte_level))),
        ("whitespace_split", "byte_level", pre(sequence({"type": "WhitespaceSplit"}, byte_level))),
        ("both_ends", "byte_level", {"post_processor": both_ends}),
        ("roberta", "byte_level", {"post_processor": None} | {"post_processor": {
            "type": "RobertaProcessing", "sep": ["</s>", eos["byte_level"]], "cls": ["<s>", bos["byte_level"]],
            "trim_offsets": True, "add_prefix_space": True, "single": None, "special_tokens": None}}),
        ("no_decoder", "byte_level", {"decoder": None}),
        ("metaspace_first", "byte_fallback", {}),
        ("metaspace_always", "byte_fallback", pre(metaspace("always"))),
        ("metaspace_never", "byte_fallback", pre(metaspace("never"))),
        ("metaspace_whole", "byte_fallback", pre(metaspace("first", False))),
        ("metaspace_decoder", "byte_fallback", {"decoder": {**metaspace("always"), "decoders": None}}),
        ("llama2", "byte_fallback", {"pre_tokenizer": None} | norm({"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, replace_space]})),
        ("gemma", "byte_fallback", {**norm(replace_space), **pre(
            {**split({"String": " "}, "MergedWithPrevious"), "replacement": None, "prepend_scheme": None}),
            "decoder": gemma_decoder}),
        ("unknown_fused", "byte_fallback", {"model": {"byte_fallback": False}}),
        ("unknown_each", "byte_fallback", {"model": {"byte_fallback": False, "fuse_unk": False}}),
        ("no_unknown", "byte_fallback", {"model": {"byte_fallback": False, "unk_token": None}}),
        ("strip_tokens", "byte_fallback", {"decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "Strip", "content": " ", "start": 1, "stop": 1}]}}),
        ("replace_regex_decoder", "byte_fallback", {"decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"Regex": "▁+"}, "content": " "}, {"type": "ByteFallback"}]}}),
        ("strip_text_end", "byte_fallback", {"decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 2, "stop": 3}]}}),
    ]


def decodings(tokenizer, ids):
    """With and without special tokens; null where tokenizers panics, as its Strip does on tokens that are too short."""
    texts = []
    for skip in (False, True):
        try:
            texts.append(tokenizer.decode(ids, skip_special_tokens=skip))
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            texts.append(None)
    return texts


def main(directory):
    bases, bos, eos = {}, {}, {}
    for name, train in (("byte_level", train_byte_level), ("byte_fallback", train_byte_fallback)):
        bases[name], bos[name], eos[name] = with_added_tokens(train())
        with open(f"{directory}/{name}.json", "w", encoding="utf-8") as out:
            json.dump(bases[name], out, ensure_ascii=False, separators=(",", ":"))
            out.write("\n")
    lines = []
    for name, base, patch in variants(bos, eos):
        tokenizer = Tokenizer.from_str(json.dumps(merge(bases[base], patch)))
        rng = random.Random(name)
        cases = []
        for text in CURATED + random_texts(rng, 40):
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            special = tokenizer.encode(text).ids
            cases.append([text, plain, special, *decodings(tokenizer, special)])
        decodes = []
        for _ in range(60):
            ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randint(1, 12))]
            decodes.append([ids, *decodings(tokenizer, ids)])
        lines.append(json.dumps({"name": name, "base": base, "patch": patch, "cases": cases, "decodes": decodes},
                                ensure_ascii=False, separators=(",", ":")))
    with open(f"{directory}/variants.jsonl.gz", "wb") as out:
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
            packed.write(("\n".join(lines) + "\n").encode("utf-8"))


if __name__ == "__main__":
    main(sys.argv[1])
