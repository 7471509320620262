// The order of search results: a page whose title is the word that was searched for comes first, and guides before examples.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const singular = (text) => text.trim().toLowerCase().replace(/s$/, "");
    const word = new URLSearchParams(window.location.search).get("q") || "";
    const isGuide = !page.includes("/");
    return score + (singular(title) === singular(word) ? 20 : 0) + (isGuide ? 2 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
