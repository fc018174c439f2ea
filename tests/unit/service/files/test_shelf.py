from dragoman_service.http.shelf import Shelf


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_file_is_kept_for_its_time_and_may_be_fetched_again() -> None:
    clock = Clock()
    shelf = Shelf(kept_s=10, clock=clock)
    shelf.put("key", "a.txt", b"abc")
    clock.now_s = 9.9
    assert [found.content for _ in range(2) if (found := shelf.get("key"))] == [b"abc"] * 2
    clock.now_s = 10
    assert shelf.get("key") is None
    assert shelf.size_bytes == 0


def test_the_oldest_make_room() -> None:
    shelf = Shelf(most_bytes=10)
    for key in "abc":
        shelf.put(key, f"{key}.txt", b"1234")
    assert shelf.get("a") is None
    assert shelf.get("b")
    assert shelf.get("c")
    assert shelf.size_bytes == 8


def test_what_never_fits_is_not_kept() -> None:
    shelf = Shelf(most_bytes=10)
    shelf.put("a", "a.txt", b"x" * 11)
    assert shelf.get("a") is None
    assert shelf.size_bytes == 0
