"""How page and table are sent: once to a reader who has it, packed to one who can unpack, small and in pieces."""

import asyncio
import gzip

import pytest

from app.web.page import VIEWS_AT_MOST, WAITING_AT_MOST, CapacityPage, ViewsWait
from app.web.representation import BYTES_AT_ONCE, Representation, representation
from app.web.table import Table
from app.web.view import View, view_of
from tests.builders import GPU, device_class, pool_counts, pool_status, resource_claim, resource_slice
from tests.web.many import a_page, a_table, many_classes
from tests.web.reader import Reader

PATHS = ["/", "/api/v1/capacity", "/page.js"]
every_path = pytest.mark.parametrize("path", PATHS)


@pytest.fixture
def page() -> Reader:
    return Reader(device_class("gpu", declares=GPU), resource_slice(4))


@every_path
def test_who_has_it_is_told_so_and_sent_nothing(page: Reader, path: str) -> None:
    tag = page.get(path).headers["etag"]
    again = page.get(path, if_none_match=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == tag
    assert again.headers["cache-control"] == "no-cache"
    assert again.headers["vary"] == "accept-encoding"


TAGS = {
    "the same": ("{}", 304),
    "one of several": ('"x", {}', 304),
    "any": ("*", 304),
    "a strong one": ("{strong}", 304),
    "another": ('W/"x"', 200),
    "part of it": ("{part}", 200),
    "no tag at all": ("", 200),
}


@pytest.mark.parametrize("case", TAGS)
def test_a_tag(page: Reader, case: str) -> None:
    tag = page.get().headers["etag"]
    written, status = TAGS[case]
    written = written.format(tag, strong=tag.removeprefix("W/"), part=tag[:-3])
    assert page.get(if_none_match=written).status_code == status


@pytest.mark.parametrize("path", PATHS[:2])
def test_what_changed_is_sent_under_another_tag(page: Reader, path: str) -> None:
    before = page.get(path)
    page.tell(resource_claim("gpu-0", consumers=["p1"]))
    after = page.get(path, if_none_match=before.headers["etag"])
    assert after.status_code == 200
    assert after.headers["etag"] != before.headers["etag"]


def test_the_same_numbers_a_moment_later_are_the_same_page(page: Reader) -> None:
    """All is seen live, so that no age tells the two apart."""
    tag = page.get().headers["etag"]
    page.watched.later(3)
    assert page.get(if_none_match=tag).status_code == 304


def test_a_count_that_has_aged_is_another_page() -> None:
    page = Reader(device_class("gpu"), resource_slice(4), pool_status(pool_counts(allocated=0)))
    tag = page.get().headers["etag"]
    page.watched.later(3)
    assert "counted 3s ago" in page.get(if_none_match=tag).text


ENCODINGS = {
    "": False,
    "gzip": True,
    "br, gzip;q=0.5": True,
    "GZIP": True,
    "*": True,
    "gzip;q=0": False,
    "gzip; q=0.000, br": False,
    "*;q=0": False,
    "br": False,
    "identity, x-gzipped": False,
}


@pytest.mark.parametrize("accepted", ENCODINGS)
@every_path
def test_it_is_packed_for_who_can_unpack_it(page: Reader, path: str, accepted: str) -> None:
    answered = page.get(path, accept_encoding=accepted)
    assert (answered.headers.get("content-encoding") == "gzip") is ENCODINGS[accepted]
    plain = page.get(path, accept_encoding="identity")
    assert answered.content == plain.content
    assert answered.headers["etag"] == plain.headers["etag"]
    assert int(plain.headers["content-length"]) == len(plain.content)


def test_the_json_is_the_same_as_ever(page: Reader) -> None:
    report = page.get("/api/v1/capacity").json()
    assert [(each["name"], each["available"]) for each in report["classes"]] == [("gpu", 4)]
    assert Reader().get("/api/v1/capacity").json() == {"snapshotTime": None, "classes": []}


# --- Small, and made once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pools", [1, 4, 20])
def test_fifty_classes_fit_into_sixty_kilobytes(pools: int) -> None:
    classes = many_classes(50, pools)
    made = asyncio.run(a_page(classes).get(a_table(classes), "", {"pool statuses": "on"}, View()))
    assert sum(map(len, made.plain)) < 60_000
    assert sum(map(len, made.packed)) < 10_000


def test_a_view_is_made_once_for_a_table_and_few_views_are_kept() -> None:
    classes = many_classes(1, 1)
    page, table = a_page(classes), a_table(classes)

    async def story() -> None:
        for view in (View(), View(state="free")):
            first = await page.get(table, "", {}, view)
            assert await page.get(table, "", {}, view) is first
            assert await page.get(table, "a notice", {}, view) is not first
        plain, again = await page.get(table, "", {}, View()), await page.get(table, "", {}, view)
        for number in range(VIEWS_AT_MOST):
            await page.get(table, "", {}, View(text=str(number)))
        assert await page.get(table, "", {}, view) is not again
        assert await page.get(table, "", {}, View()) is plain

    asyncio.run(story())


async def asked_at_once(page: CapacityPage, table: Table, *views: View) -> list[Representation | BaseException]:
    """What becomes of these, all asked for before one is made; whoever hangs up is asked for all the same."""
    return await asyncio.gather(*(page.get(table, "", {}, view) for view in views), return_exceptions=True)


def test_who_asks_for_the_same_view_waits_for_that_one_and_for_one_too_many_is_sent_away() -> None:
    classes = many_classes(20, 1)
    page, table = a_page(classes), a_table(classes)
    views = [View(text=f"{number}") for number in range(WAITING_AT_MOST + 2)]
    made = asyncio.run(asked_at_once(page, table, *views, *views[:2] * 20))
    assert [isinstance(each, ViewsWait) for each in made[: len(views)]] == [False] * WAITING_AT_MOST + [True] * 2
    assert set(made[len(views) :]) == set(made[:2])


def test_the_plain_page_waits_for_no_other_view() -> None:
    classes = many_classes(WAITING_AT_MOST, 1000)
    page, table = a_page(classes), a_table(classes)

    async def story() -> None:
        named = [View(text=each.name, all_pools=True) for each in classes]
        others = asyncio.create_task(asked_at_once(page, table, *named))
        await asyncio.sleep(0)
        plain = await page.get(table, "", {}, View())
        assert not others.done()
        assert await page.get(table, "", {}, View()) is plain
        assert not any(isinstance(each, BaseException) for each in await others)

    asyncio.run(story())


def test_who_asks_for_what_there_is_not_asks_for_one_view() -> None:
    assert {view_of(f"{n}", f"z{n}", f"z{n}", "all") for n in range(9)} == {View(misunderstood=True)}
    assert view_of("", "", "", "all") == View()


def test_a_view_of_all_pools_is_not_kept() -> None:
    classes = many_classes(1, 1)
    page, table, view = a_page(classes), a_table(classes), View(text=classes[0].name, all_pools=True)

    async def story() -> None:
        first = await page.get(table, "", {}, view)
        assert await page.get(table, "", {}, view) is not first

    asyncio.run(story())


@pytest.mark.parametrize(("query", "listed"), [("", 0), ("pools=all", 0), ("class=gpu&pools=all", 300)])
def test_all_pools_are_listed_of_the_class_that_is_called_so(query: str, listed: int) -> None:
    slices = (resource_slice(1, pool=f"n{i}") for i in range(300))
    text = Reader(device_class("gpu"), device_class("gpu-too"), *slices).text(f"/?{query}")
    assert text.count("<article class=card") == 2
    assert text.count("<tr data-driver=") == listed


def test_who_is_sent_away_is_told_when_to_come_back(page: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.page.WAITING_AT_MOST", 0)
    answered = page.get("/?state=full")
    assert (answered.status_code, answered.headers["retry-after"]) == (503, "5")
    assert answered.json()["detail"] == "too many views of the page are to be made, try again soon"
    assert page.get().status_code == 200


def test_a_new_point_of_the_line_is_a_new_page(page: Reader) -> None:
    asyncio.run(page.table.get())
    before = page.get().headers["etag"]
    page.history.note(asyncio.run(page.table.get()).classes)
    assert page.get(if_none_match=before).status_code == 200


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"ab" * BYTES_AT_ONCE, b"", b"c" * (BYTES_AT_ONCE - 1)]])
def test_pieces_of_any_size_are_packed_whole(pieces: list[bytes]) -> None:
    made = asyncio.run(representation(pieces, "text/plain"))
    assert b"".join(made.plain) == b"".join(pieces)
    assert gzip.decompress(b"".join(made.packed)) == b"".join(pieces)


def test_a_large_page_comes_in_pieces_that_hold_nobody_up() -> None:
    classes = many_classes(1, 2000)
    made = asyncio.run(a_page(classes).get(a_table(classes), "", {}, View(classes[0].name, all_pools=True)))
    assert b"".join(made.plain).count(b"<tr data-driver=") == 2000
    assert max(map(len, made.plain)) < 20_000
