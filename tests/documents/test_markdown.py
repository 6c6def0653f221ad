"""Markdown as sites and READMEs have it: what is text is translated, and the rest stays."""

import dataclasses

import pytest

from pellucid.documents.markdown_dialects import without_marks
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import translated
from tests.documents.test_untouched_bytes import Capitals, Identity


def said(source: str) -> str:
    assert translate_document(source.encode(), Identity(), "a.md") == source.encode()
    return translate_document(source.encode(), Capitals(), "a.md").decode()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # Python-Markdown and Material for MkDocs
        ("!!! note\n    red house\n\n    old cat\n", "!!! note\n    RED HOUSE\n\n    OLD CAT\n"),
        ('!!! tip "A *red* one"\n    x y\n', '!!! tip "A *RED* ONE"\n    X Y\n'),
        ('???+ note "red"\n    old\n', '???+ note "RED"\n    OLD\n'),
        ('??? "red"\n    old\n', '??? "RED"\n    OLD\n'),
        (
            '=== "red"\n    old\n\n    ```\n    code\n    ```\n',
            '=== "RED"\n    OLD\n\n    ```\n    code\n    ```\n',
        ),
        ("/// note | red house\nold cat\n///\n", "/// note | RED HOUSE\nOLD CAT\n///\n"),
        # Docusaurus, VitePress, Pandoc
        (":::note\nred\n:::\n", ":::note\nRED\n:::\n"),
        (":::tip[red *house*]\n\nold\n\n:::\n", ":::tip[RED *HOUSE*]\n\nOLD\n\n:::\n"),
        ("::: warning red house\nold\n:::\n", "::: warning RED HOUSE\nOLD\n:::\n"),
        ("::: {.note #id}\nred\n:::\n", "::: {.note #id}\nRED\n:::\n"),
        # MyST
        ("```{note}\n:class: x\nred\n```\n", "```{note}\n:class: x\nRED\n```\n"),
        (":::{admonition} red\nold\n:::\n", ":::{admonition} RED\nOLD\n:::\n"),
        (
            ":::{code-block} python\nred = 1\n:::\nold\n",
            ":::{code-block} python\nred = 1\n:::\nOLD\n",
        ),
        ("```{math}\na = red\n```\n", "```{math}\na = red\n```\n"),
        ("(target)=\n# red\n", "(target)=\n# RED\n"),
        ("see {ref}`the page <x>` now\n", "SEE {ref}`the page <x>` NOW\n"),
        # GitHub
        ("> [!NOTE]\n> red house\n", "> [!NOTE]\n> RED HOUSE\n"),
        # definition lists and footnotes
        ("red\n: old\n  cat\n: new\n", "RED\n: OLD CAT\n: NEW\n"),
        ("red[^1] x\n\n[^1]: old\n\n    more\n", "RED[^1] X\n\n[^1]: OLD\n\n    MORE\n"),
        ("*[HTML]: Hyper text\n", "*[HTML]: Hyper text\n"),
        # wiki links, tables of contents, attributes
        ("see [[Red house]] and [[Page|old]]\n", "SEE [[Red house]] AND [[Page|old]]\n"),
        ("x ![[red.png]] y\n", "X ![[red.png]] Y\n"),
        *((f"{each}\n\nred\n", f"{each}\n\nRED\n") for each in ("[TOC]", "[[_TOC_]]", "{:toc}")),
        ("red\n{: .class }\n", "RED\n{: .class }\n"),
        ("# red {#own .k}\n", "# RED {#own .k}\n"),
        ("[red](x){target=_blank} old\n", "[RED](x){target=_blank} OLD\n"),
        ("a ![x](y){: .k width=5} b\n", "A ![X](y){: .k width=5} B\n"),
        # Hugo, Jekyll
        ('{{< figure src="red" >}}\n\nold\n', '{{< figure src="red" >}}\n\nOLD\n'),
        ('{{< figure\n  caption="red"\n>}}\n', '{{< figure\n  caption="red"\n>}}\n'),
        ("{{< highlight go >}}\nred\n{{< /highlight >}}\n",) * 2,
        ("{% highlight ruby %}\nred\n{% endhighlight %}\n",) * 2,
        ('red {{< ref "x_y_z" >}} old\n', 'RED {{< ref "x_y_z" >}} OLD\n'),
        ('red {{ a | b: "*x*" }} old\n', 'RED {{ a | b: "*x*" }} OLD\n'),
        ("{% if a %}\nred\n{% endif %}\n", "{% if a %}\nRED\n{% endif %}\n"),
        # MDX
        ("import A from './a';\n\nred\n", "import A from './a';\n\nRED\n"),
        ("export const x = 1;\n\nimport the house\n", "export const x = 1;\n\nIMPORT THE HOUSE\n"),
        (
            "<Tabs>\n\nred {/* old */} cat\n\n</Tabs>\n",
            "<Tabs>\n\nRED {/* old */} CAT\n\n</Tabs>\n",
        ),
        (
            "<Button onClick={() => x}>red</Button> old\n",
            "<Button onClick={() => x}>RED</Button> OLD\n",
        ),
        ("<div>\n{x.map(i => <b>red</b>)}\n</div>\n",) * 2,
        # Pandoc and Obsidian
        ("old H~2~O and x^2^ and 3^rd^ cat\n", "OLD H~2~O AND x^2^ AND 3^RD^ CAT\n"),
        ("old cat^[a *red* one] is\n", "OLD CAT^[A *RED* ONE] IS\n"),
        ("[red house]{.k} old\n", "[RED HOUSE]{.k} OLD\n"),
        ("red [@doe99, p. 3; @x] old [see @a]\n", "RED [@doe99, p. 3; @x] OLD [see @a]\n"),
        ("\\newpage\n\nred \\emph old\n", "\\newpage\n\nRED \\\\EMPH OLD\n"),
        ("==red house== old\n", "==RED HOUSE== OLD\n"),
        ("red %%a note%% old ^block-1\n", "RED %%a note%% OLD ^block-1\n"),
        ("see [[1]](#x) or [[1]]\n", "SEE [\\[1\\]](#x) OR [[1]]\n"),
        ("a == b and c == d, ~x y~, ^x y^\n", "A == B AND C == D, ~X Y~, ^X Y^\n"),
        # HTML
        ("<summary>red <b>x</b></summary>\n\nold\n", "<summary>RED <b>X</b></summary>\n\nOLD\n"),
        ('<p><img alt="red">old</p>\n', '<p><img alt="RED">OLD</p>\n'),
        ("<script>\nred\n</script>\n",) * 2,
        (
            "press <kbd>Ctrl</kbd> and <code>a *b*</code>\n",
            "PRESS <kbd>Ctrl</kbd> AND <code>a *b*</code>\n",
        ),
        ("- <i>red</i>\n\n  <p>old</p>\n", "- <i>RED</i>\n\n  <p>OLD</p>\n"),
        # links whose address has their text as its name, leaf directives, embedded films
        (
            "see [red] or [old][] x\n\n[red]: a\n[old]: b\n",
            "SEE [RED][red] OR [OLD][old] X\n\n[red]: a\n[old]: b\n",
        ),
        ("::include{file=red.md}\n\nold\n", "::include{file=red.md}\n\nOLD\n"),
        ("@[youtube](abc) red\n", "@[youtube](abc) RED\n"),
        # formulas, and what looks like one
        ("red $x_1^2$ and $$y$$ old\n", "RED $x_1^2$ AND $$y$$ OLD\n"),
        ("red \\(a_b\\) and \\[c = d\\] old\n", "RED \\(a_b\\) AND \\[c = d\\] OLD\n"),
        ("$$\na = red\n= b\n$$\nold\n", "$$\na = red\n= b\n$$\nOLD\n"),
        ("\\[\na = red\n\\]\nold\n", "\\[\na = red\n\\]\nOLD\n"),
        ("\\begin{align}\na &= red\n\\end{align}\n",) * 2,
        ("from $5 to $6 and US$ 7\n", "FROM $5 TO $6 AND US$ 7\n"),
        ("in $HOME/red and $PATH here\n", "IN $HOME/red AND $PATH HERE\n"),
        ("a \\[red house\\] here\n", "A \\[RED HOUSE\\] HERE\n"),
        ("$$ red house\n", "$$ RED HOUSE\n"),
        ("$$ medium food\n\nold\n\n$$$ cat\n", "$$ MEDIUM FOOD\n\nOLD\n\n$$$ CAT\n"),
        ("$$\nx\n$$ where x is red\n", "$$\nx\n$$ WHERE X IS RED\n"),
        ("$$\n\n\\text{red old cat} = x\n\n$$ {#eq:a}\n",) * 2,
        ("$$\nred old\n\ncat\n$$\n", "$$ RED OLD\n\nCAT $$\n"),
        ("\\[1] A red house.\n\nSee \\[2\\] old.\n", "\\[1\\] A RED HOUSE.\n\nSEE \\[2\\] OLD.\n"),
        ("a \\[красный дом\\] here\n", "A \\[КРАСНЫЙ ДОМ\\] HERE\n"),
        ("pay $5/month, or 50$ a year\n", "PAY $5/MONTH, OR 50$ A YEAR\n"),
        ("a $n \\text{ if it is red}$ b\n", "A $n \\text{ if it is red}$ B\n"),
        # text between two marks on a line of its own
        ("{% a %} is red {% b %}\nold\n", "{% a %} IS RED {% b %} OLD\n"),
        ("{% tip %}red cat.{% endtip %}\n", "{% tip %}RED CAT.{% endtip %}\n"),
        ("{{< b >}}red cat{{< /b >}}\n", "{{< b >}}RED CAT{{< /b >}}\n"),
        ("%% a %% red %% b %%\n", "%% a %% RED %% b %%\n"),
        ("{/* a */} red {/* b */}\n", "{/* a */} RED {/* b */}\n"),
        ("{{< math >}}x{{< /math >}} is red\n", "{{< math >}}x{{< /math >}} IS RED\n"),
        # fences in lists and quotes, and what follows them
        *(
            (f"{fence}\n\n::: tip red\nold\n:::\n", f"{fence}\n\n::: tip RED\nOLD\n:::\n")
            for fence in (
                "- ```bash\n  ls\n  ```",
                "1. ```\n   ls\n   ```",
                "    ```",
                "> ```\n> ls",
                "{% highlight md %}\n```\n{% endhighlight %}",
            )
        ),
        ("- ```{note}\n  :class: x\n  red\n  ```\n", "- ```{note}\n  :class: x\n  RED\n  ```\n"),
        (
            "````{note}\n```python\n::: x\n```\n```{tip}\nred\n```\n````\n",
            "````{note}\n```python\n::: x\n```\n```{tip}\nRED\n```\n````\n",
        ),
        ("    ::: tip red\n",) * 2,
        # words of JavaScript that begin a sentence
        ("Export default settings now.\n", "EXPORT DEFAULT SETTINGS NOW.\n"),
        ("export function is off\n", "EXPORT FUNCTION IS OFF\n"),
        ("Import 'a.csv'\n", "IMPORT 'a.csv'\n"),
        (
            "export const x = {\n  a: 'red',\n}\n\nold\n",
            "export const x = {\n  a: 'red',\n}\n\nOLD\n",
        ),
        (
            "import {\n  A,\n} from 'a'\nexport default A\n\nb\n",
            "import {\n  A,\n} from 'a'\nexport default A\n\nB\n",
        ),
        ("export function A() {\n  return 1\n}\nexport * from 'a'\n",) * 2,
        # titles with attributes; directives by any name
        (":::tip[red tip]{#my-tip}\nold\n:::\n", ":::tip[RED TIP]{#my-tip}\nOLD\n:::\n"),
        ("::: details red {open}\nold\n:::\n", "::: details RED {open}\nOLD\n:::\n"),
        ("```{prf:theorem} red\nold\n```\n", "```{prf:theorem} RED\nOLD\n```\n"),
        ("```{Note}\n---\nclass: x\n---\nred\n```\n", "```{Note}\n---\nclass: x\n---\nRED\n```\n"),
        (
            ":::{figure} red.png\n:alt: x\n\nold\n:::\n",
            ":::{figure} red.png\n:alt: x\n\nOLD\n:::\n",
        ),
        ("```{py:function} red(x)\nold\n```\n", "```{py:function} red(x)\nOLD\n```\n"),
        ("```{mermaid}\nred old\n```\n",) * 2,
        # snippets, titles in attributes, commands of LaTeX, references of Pandoc
        ('--8<-- "file.md"\n\nred\n', '--8<-- "file.md"\n\nRED\n'),
        (
            "--8<--\nfile.md\n; old.md\n--8<--\n\nred\n",
            "--8<--\nfile.md\n; old.md\n--8<--\n\nRED\n",
        ),
        ("<<< @/a/red.js{2}\n\nred\n", "<<< @/a/red.js{2}\n\nRED\n"),
        (
            '::: {.callout-note #x title="red *house*"}\nold\n:::\n',
            '::: {.callout-note #x title="RED *HOUSE*"}\nOLD\n:::\n',
        ),
        (":::note{title='red'}\nold\n:::\n", ":::note{title='RED'}\nOLD\n:::\n"),
        ('::: {.x subtitle="red"}\nold\n:::\n', '::: {.x subtitle="red"}\nOLD\n:::\n'),
        (
            "in \\ref{sec:one} and~\\cite[p. 3]{doe} we\n",
            "IN \\ref{sec:one} AND~\\cite[p. 3]{doe} WE\n",
        ),
        (
            "a \\textbf{red *one*} and \\href{http://a.b}{old} x\n",
            "A \\textbf{RED *ONE*} AND \\href{http://a.b}{OLD} X\n",
        ),
        ("an old cat\\footnote{It is red.}\n", "AN OLD CAT\\footnote{IT IS RED.}\n"),
        ("so \\begin{math}a = red\\end{math} is\n", "SO \\begin{math}a = red\\end{math} IS\n"),
        ("a \\\\ref(red) x\n", "A \\\\REF(RED) X\n"),
        ("see @fig-plot, @fig:one and @sec-a.\n", "SEE @fig-plot, @fig:one AND @sec-a.\n"),
        ("as @doe99 says (-@doe99; @x)\n", "AS @doe99 SAYS (-@doe99; @x)\n"),
        ("see [@red-cat](x) and @a/b-c now\n", "SEE [@red-cat](x) AND @a/b-c NOW\n"),
        ("mail a@b.com, https://x.y/@red/old\n", "MAIL a@b.com, https://x.y/@red/old\n"),
        ("ask @red/old\\_cat now\n", "ASK @red/old\\_cat NOW\n"),
        ("@red<br>old\n", "@red<br>OLD\n"),
        ("so @bob...red old.\n", "SO @bob...RED OLD.\n"),
        ("ask @anna--she is red.\n", "ASK @anna--SHE IS RED.\n"),
        ("hi @everyone.Please come.\n", "HI @everyone.PLEASE COME.\n"),
        ("cc @bob:please read\n", "CC @bob:PLEASE READ\n"),
        (
            "see @doe2020, @doe:2020 and [@doe99, p. 3]\n",
            "SEE @doe2020, @doe:2020 AND [@doe99, p. 3]\n",
        ),
        ("see @sec-intro, @conf:x/y/Doe17a.\n", "SEE @sec-intro, @conf:x/y/Doe17a.\n"),
        ("@bob:chat.org, @Doe.Roe2020, @john.doe.\n", "@bob:chat.org, @Doe.Roe2020, @john.doe.\n"),
        # lines that stay apart
        ("red\nold\n: a\n  b\n: c\n", "RED\nOLD\n: A B\n: C\n"),
        ("red\nold\n\n:   a\n", "RED\nOLD\n\n:   A\n"),
        ("It is red.\nold\n: a\n", "IT IS RED. OLD : A\n"),
        ("| red\n| *old*\n|   cat\n  x\n", "| RED\n| *OLD*\n|   CAT X\n"),
        ("> | red\n> | old\n", "> | RED\n> | OLD\n"),
        ("a. red\nb. old\n   cat\nc. x\n", "a. RED\nb. OLD CAT\nc. X\n"),
        ("(i) red\n(ii) old\n", "(i) RED\n(ii) OLD\n"),
        ("iv) red\nv) old\n", "iv) RED\nv) OLD\n"),
        ("(3) red\n(4) old\n", "(3) RED\n(4) OLD\n"),
        ("#. red\n#. old\n", "#. RED\n#. OLD\n"),
        ("(@) red\n(@good) old\n\nsee (@good)\n", "(@) RED\n(@good) OLD\n\nSEE (@good)\n"),
        ("• red\n• old\n", "• RED\n• OLD\n"),
        ("a. red\nc. old\n", "A. RED C. OLD\n"),
        ("vitamin\na. red\nb. old\n", "VITAMIN A. RED B. OLD\n"),
    ],
)
def test_what_dialects_add_stays_and_their_text_is_translated(source: str, found: str):
    assert said(source) == found


CELLS = [
    *(
        f"```{{{name}}}\nred = 1\nold = 2\n```\n"
        for name in (
            *("r", "python", "julia", "bash", "sql", "ojs", "stan", "dot", "js", "css", "Rcpp"),
            *("cat", "powershell", "terminal"),
        )
    ),
    "```{r, echo=FALSE}\nred\nold\n```\n",
    "```{any}\n#| label: red\nred\nold\n```\n",
    "~~~{any}\n//| echo: false\nred\nold\n~~~\n",
    "- a\n\n  ```{r}\n  red\n  old\n  ```\n",
]


@pytest.mark.parametrize("source", CELLS)
def test_a_cell_of_code_stays(source: str):
    for name in ("a.md", "a.qmd"):
        found = translate_document(source.encode(), Capitals(), name).decode()
        assert found == source.replace("- a\n", "- A\n")


def test_in_quarto_every_name_in_braces_is_that_of_code():
    cell = "```{note}\nred\n```\n"
    assert said(cell) == cell.replace("red", "RED")
    assert translate_document(cell.encode(), Capitals(), "a.qmd").decode() == cell
    for setting in ("format: html", "execute:\n  echo: false", "output: html_document"):
        page = f"---\n{setting}\n---\n\n{cell}"
        assert said(page) == page


def test_a_quotation_mark_does_not_end_the_title_that_it_stands_in():
    class Quoting(Identity):
        def one(self, sentence, align):
            return dataclasses.replace(super().one(sentence, align), text=f'a "b" {sentence}')

    for line in (':::{title="red"}', '!!! note "red"', '=== "red"'):
        found = translate_document(f"{line}\n".encode(), Quoting(), "a.md").decode()
        assert found == f"{line}\n".replace("red", "a &quot;b&quot; red")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        # the text that describes a picture, and the titles of pictures and links
        ("![red house](a.png)\n", "![RED HOUSE](a.png)\n"),
        (
            'old ![a *red* `x` one](<a b.png> "my \\"cat\\"") x\n',
            'OLD ![A *RED* `x` ONE](<a b.png> "MY \\"CAT\\"") X\n',
        ),
        ("[![red](a.svg)](x) old ![](b.png)\n", "[![RED](a.svg)](x) OLD ![](b.png)\n"),
        (
            "[old](x 'red') and [a](b)[c](d \"e\")\n",
            "[OLD](x 'RED') AND [A](b)[C](d \"E\")\n",
        ),
        ("![red]\n\n[red]: a.png\n",) * 2,
        ("![red][]\n\n[red]: a.png\n",) * 2,
        ("![red][x]\n\n[x]: a.png\n", "![RED][x]\n\n[x]: a.png\n"),
        ("![image.png](a.png) ![](b)\n",) * 2,
        ("> ![red\n> house](a.png)\n> old\n", "> ![RED HOUSE](a.png) OLD\n"),
        ("| a |\n|---|\n| ![x \\| y](z) |\n", "| A |\n|---|\n| ![X \\| Y](z) |\n"),
        ("# ![red [x]](a.png) old\n", "# ![RED \\[X\\]](a.png) OLD\n"),
    ],
)
def test_what_describes_pictures_and_links_is_translated(source: str, found: str):
    assert said(source) == found


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (
            "---\ntitle: red\nlayout: post\ntags: [old, cat]\ndescription: >\n  old\n  cat\n---\n",
            "---\ntitle: RED\nlayout: post\ntags: [old, cat]\ndescription: >\n  OLD CAT\n---\n",
        ),
        ('---\r\ntitle: "red: x"\r\n...\r\n', '---\r\ntitle: "RED: X"\r\n...\r\n'),
        # VitePress
        (
            "---\nhero:\n  name: red\n  tagline: old 'x'\n  image: /a/red.png\n---\n",
            "---\nhero:\n  name: red\n  tagline: OLD 'X'\n  image: /a/red.png\n---\n",
        ),
        # Hugo
        (
            "+++\ntitle = \"red \\\"x\\\"\" # c\nslug = 'old'\nsummary = 'old'\n+++\n",
            "+++\ntitle = \"RED \\\"X\\\"\" # c\nslug = 'old'\nsummary = 'OLD'\n+++\n",
        ),
        ('{\n"title": "red",\n"type": "old"\n}\n', '{\n"title": "RED",\n"type": "old"\n}\n'),
        # Pelican, MultiMarkdown
        (
            "Title: red: x\nDate: 2020-01-01\nTags: a, b\nSummary: old\n    cat\n",
            "Title: RED: X\nDate: 2020-01-01\nTags: a, b\nSummary: old\n    cat\n",
        ),
        # a template of settings
        ("---\n# red\n{{ old }}\n---\n",) * 2,
        # no YAML: nothing is guessed
        ("---\ntitle: red: old: {{ x\n---\n",) * 2,
    ],
)
def test_of_the_settings_at_the_top_what_readers_see_is_translated(settings: str, found: str):
    assert said(f"{settings}\n# red\n") == f"{found}\n# RED\n"


@pytest.mark.parametrize(
    "text",
    [
        *("Note: red house\n", "---\nred\n", "+++ red\n", "{red old\n"),
        *("---\n\nred\n\n---\n", "+++\nred\n+++\n", "{\n\nred\n\n}\n"),
        *("Status: it is red\nNote: old\n", "Date: not yet\n"),
    ],
)
def test_a_text_that_begins_like_settings_is_translated(text: str):
    assert said(text).split() == text.upper().split()


def test_many_directives_without_an_end_are_read_in_linear_time():
    """The parser reads the page for each of those within each other, up to a limit."""
    for source in ("```{note}\n", ":::{code}\n", "export const x = {\n"):
        lines, _ = without_marks((source * 2_000).split("\n"))
        assert len(lines) == 2_001


def test_a_heading_keeps_the_name_that_the_page_links_to():
    """Generators name headings by their text, which is another one now."""
    links = "see [a](#the-red-house), [b](#x) and [c](#same-1)\n\n"
    source = links + "# The red `house`!\n\n{0}# same\n\n# same\n"
    found = said(source.replace("{0}", ""))
    assert '\n# <a id="the-red-house"></a>THE RED `house`!\n' in found
    assert '\n# SAME\n\n# <a id="same-1"></a>SAME\n' in found

    # Where the page has attributes, as Hugo's and kramdown's have, it is one.
    found = said(source.replace("{0}", "# y {#x}\n\n").replace("`house`!", "`house`! ##"))
    assert "\n# THE RED `house`! ## {#the-red-house}\n" in found
    assert "\n# Y {#x}\n" in found
    # Without a link nothing is added.
    assert said("# red house\n") == "# RED HOUSE\n"


def test_names_of_headings_in_other_scripts_and_of_html_links_are_found():
    found = said(
        '<a href="#rote-häuser">x</a> [y](#%D0%B4%D0%BE%D0%BC)\n\n# Rote Häuser\n\n# дом\n'
    )
    assert '# <a id="rote-häuser"></a>ROTE HÄUSER' in found
    assert '# <a id="дом"></a>ДОМ' in found

    # Vowels of Hindi and tones of Thai are marks, and part of the name.
    found = said("[x](#हिन्दी-भाषा-a) [y](#ที่นี่-b)\n\n# हिन्दी भाषा a\n\n# ที่นี่ b\n")
    assert '# <a id="हिन्दी-भाषा-a"></a>' in found
    assert '# <a id="ที่นี่-b"></a>' in found


def test_fragments_of_mdx_stay():
    """Escaped, the first of them would be text, and the second close nothing."""
    source = "<>\n\nred house\n\n</>\n\nthe <>red</> house\n"
    assert translated(source, "a.mdx") == ("<>\n\nHOUSE RED\n\n</>\n\n<>RED</> THE HOUSE\n")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            '<Card title="red house" href="/x">\n  Old [cat](/a) and **b**.\n</Card>\n',
            '<Card title="RED HOUSE" href="/x">\n  OLD [CAT](/a) AND **B**.\n</Card>\n',
        ),
        (
            "<Steps>\n  <Step>\n    Old `a` cat\n\n    red house\n  </Step>\n</Steps>\n",
            "<Steps>\n  <Step>\n    OLD `a` CAT\n\n    RED HOUSE\n  </Step>\n</Steps>\n",
        ),
        (
            "<Tabs>\n    - old cat\n    - red house\n      - b\n</Tabs>\n",
            "<Tabs>\n    - OLD CAT\n    - RED HOUSE\n      - B\n</Tabs>\n",
        ),
        (
            "<Tab\n  label='red'\n  value={{a: 1}}\n>\n  ::: tip Old cat\n  x\n  :::\n</Tab>\n",
            "<Tab\n  label='RED'\n  value={{a: 1}}\n>\n  ::: tip OLD CAT\n  X\n  :::\n</Tab>\n",
        ),
        (
            "<Code>\n    ```js\n    a b\n    ```\n</Code>\n\nx\n",
            "<Code>\n    ```js\n    a b\n    ```\n</Code>\n\nX\n",
        ),
    ],
)
def test_between_the_tags_of_mdx_stands_markdown(source: str, found: str):
    assert translate_document(source.encode(), Identity(), "a.mdx").decode() == source
    assert translate_document(source.encode(), Capitals(), "a.mdx").decode() == found
    imports = "import Tabs from '@theme/Tabs'\n\n"
    assert said(imports + source) == imports + found


def test_in_other_markdown_indented_lines_are_code():
    assert said("red\n\n    old cat\n") == "RED\n\n    old cat\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("red house \\$5 or 10\\$ now", "HOUSE RED\\$5 10 OR\\$NOW"),
        ("red house $x$ at \\$5 now", "HOUSE RED $x$ AT\\$NOW 5"),
        ("red house at $5 now", "HOUSE RED AT$NOW 5"),
    ],
)
def test_dollars_keep_the_backslash_that_makes_them_no_formula(source: str, found: str):
    assert translated(source, "a.md") == found
