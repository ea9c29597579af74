"""`nonmember plant holdout`: draws, writes and says what to do with each file."""

import json
import re


def test_a_draw_is_written_and_composes_into_an_audit(nonmember, tmp_path):
    file, folder = tmp_path / "documents.jsonl", tmp_path / "drawn"
    file.write_text(
        "".join(json.dumps({"id": f"d{n}", "text": f"text {n}", "book": f"b{n // 2}"}) + "\n" for n in range(20))
    )
    said = nonmember("plant", "holdout", f"documents={file}", f"out={folder}", "share=0.3", "data.cluster_field=book")
    assert said.status == 0, said.err
    assert "6 documents of 3 clusters published, 14 of 7 kept." in said.out
    assert "read 4 x: 0.35, less a reference 0.93; at an error of 0.05" in said.out
    [command] = re.findall(r"nonmember (audit method=holdout .*) target.path=MODEL", said.out)
    assert (folder / "commitment.txt").read_text().strip() in command
    again = nonmember("plant", "holdout", f"documents={file}", f"out={folder}")
    assert again.status == 1
    assert "not overwritten" in again.err
    composed = nonmember(*command.split(), "--cfg", "job")
    assert composed.status == 0, composed.err
    missing = nonmember("plant", "holdout", f"documents={file}")
    assert "out is missing" in missing.err
