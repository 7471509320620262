from base64 import b64decode

from fenchel.app.pages import page


def test_a_page_is_whole_and_escapes_what_it_is_given():
    text = page.page("a < b", "x & y", "<p>block</p>")
    assert text.startswith("<!doctype html>")
    assert "<title>a &lt; b</title>" in text
    assert "<p>x &amp; y</p><p>block</p></body>" in text
    assert 'name="viewport"' in text


def test_a_table_parts_its_groups():
    text = page.table(["data", "model", "error"], [["a", "m<", "1"], ["a", "n", "2"], ["b", "m", "3"]])
    assert text.count("<tr class=") == 2
    assert '<td class="text">m&lt;</td><td>1</td>' in text
    assert '<th class="text">model</th><th>error</th>' in text


def test_a_list_escapes_its_lines():
    assert page.items(["1 < 2", "3"]) == "<ul><li>1 &lt; 2</li><li>3</li></ul>"


def test_figures_are_images_with_a_text():
    text = page.figures([("<svg>é</svg>", 'a "caption"')])
    data = text.partition("base64,")[2].partition('"')[0]
    assert b64decode(data).decode() == "<svg>é</svg>"
    assert 'alt="a &quot;caption&quot;"' in text
    assert "<figcaption>a &quot;caption&quot;</figcaption>" in text
