"""Stories by the thousand, judged by the product in this process and by the scheduler's allocator."""

import json
import tempfile
from pathlib import Path

from tests.truth.comparison import Figures, Worth, worth
from tests.truth.oracle import Oracle
from tests.truth.product import answers
from tests.truth.stories import Story, stories

SAVED_OF_A_KIND = 3


def compare_stories(seed: int, count: int, folder: Path) -> Figures:
    """What came out of so many stories; the first disagreements of each kind are saved in `folder`."""
    figures = Figures()
    with Oracle("allocator") as oracle, tempfile.TemporaryDirectory() as scratch:
        for story, line in oracle.ask_all(stories(seed, count), Story.question):
            answer = json.loads(line)
            for how, said in answers(story, Path(scratch)).items():
                value, reason = worth(story, said, answer)
                seen = figures.note(value, reason)
                if value in (Worth.WRONG, Worth.MISS) and seen <= SAVED_OF_A_KIND:
                    story.notes = {"asked": how, "said": said, "oracle": answer}
                    story.save(folder / value / reason)
    return figures
