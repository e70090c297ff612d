"""Words that no concept starts or ends with: function words, and words of every book.

Lists of our own, casefolded, for English, Russian and Japanese. They bound noun phrases (there is
no tagger), so they hold frequent verbs, adverbs and general adjectives too.
"""

from __future__ import annotations

__all__ = ["DETERMINERS", "FUNCTION", "GENERIC", "REFERENCE_WORDS", "STOP", "TITLES"]

_FUNCTION = """
a a.k.a about above according accordingly across additionally after again against al all almost
along also although am among an and another any anybody anyone anything are aren't around as assume
at away back based be because been before behind being below beneath beside besides between beyond
both but by can can't cannot cf consequently consider could couldn't despite did didn't do does
doesn't doing don't done down due during e.g each eg either else et etc even ever every everyone
everything few finally for from furthermore given had hadn't has hasn't have haven't having he
hence her here hers herself him himself his how however i i'm i've i.e if in into is isn't it it's
its itself just least less let let's like many may maybe me might mine more moreover most much must
my myself near neither never nevertheless no nobody non none nonetheless nor not note nothing now
of off often on once one ones only onto or other others otherwise ought our ours ourselves out over
own per perhaps please quite rather same see several shall she should shouldn't similarly since so
some somebody someone something sometimes somewhere specifically still such suppose than that
that's the their theirs them themselves then there there's thereafter thereby therefore therein
thereof these they they're this those though through throughout thus till to together too toward
towards under unless unlike unlikely until up upon us using very via viz vs was wasn't we we're
we've well were weren't what what's whatever when whenever where whereas whereby wherein wherever
whether which while who who's whoever whom whose why will with within without won't would wouldn't
yet you you're you've your yours yourself yourselves
"""

_ENGLISH = """
able abovementioned accept accepted accordance achieve achieved achieves acquire acquired actually
add added adding addition additional adds advance affect affected affects aforementioned
afterwards ago aim aims allow allowed allowing allows alone already alternative alternatively
always amount amounts announce announced anyway anywhere apart appear appears applied applies
apply applying approach appropriate approve approved approximately arise arises arose ask asked
asks aspect aspects assumed assumes attempt attempts available avoid became become becomes
becoming beforehand began begin begins believe belong belongs best better billion bit bought brief
briefly bring brings broke brought build builds built call called calling calls came carried carry
case cases caught cause caused causes causing certain certainly change changed changes check
checks choose chose chosen clear clearly close closed combine combined combines come comes coming
commonly commonplace compare compared comparing complete completely compute computed computes
conduct conducted considered considering considers consist consisting consists contain contained
containing contains continue continued continues contrast contribute correct correctly
corresponding couple cover covered covers create created creates creating current currently date
day days deal decide decided decrease decreased decreases define defined defines defining
demonstrate demonstrated demonstrates denote denoted denotes depend depending depends derive
derived describe described describes describing detailed determine determined determines develop
developed difference differences different difficult difficulty directly discover discuss
discussed drew drop drove earlier early easier easily easy effective eight eighth elsewhere employ
employed enable enabled enables end ended ending ends enough ensure ensures enter entire entirely
equal equally especially establish established evaluate evaluated eventually everywhere exactly
examine example examples exceed exceeded exceeds except exist existence existing exists expect
expected explain explained explains explore extend extended extends extent extremely fact fail
failed fails fall falls far feel fell felt fewer fifth fill final find finding finds first fit
five focused focuses follow followed following follows formed former forth found four fourth full
fully further gave general generally generate generated generates get gets getting give gives
giving go goal goals goes going gone good got great greater greatly grew grows half hand handle
handled happen happened happens hard held help helped helps high higher highest hold holds hope
hundred hung idea identified identifies identify ie ignore ii iii illustrate illustrated
illustrates immediately implement implemented implements important improve improved improves
include included includes including increase increased increases increasing indeed indicate
indicated indicates indicating initially inside inspired instead interesting introduce introduced
introduces investigate involve involved involves iv join keep keeps kept kind kinds knew know
known knows large largely larger largest last lastly lately later latter lay lead leading leads
learn leave leaves led left lets lie lies likely likewise limited listen little live located long
longer look looked looking looks lose loses lost lot low lower lowest made mainly maintain
maintained make makes making manage manner matter matters mean meaning means meant meet mention
mentioned merely met million modify moment month months mostly multiple namely nearly necessary
need needed needs new newly next nine normal normally noted notes notice nowhere numerous observe
observed obtain obtained obviously occur occurred occurs offer offered offers oh ok old older
operate opposite order ordinary original outperform outperforms outside overall paid participate
particular particularly pass passed past pay perform performed performing performs pick piece
place placed places plays plus pm portion possibility possible possibly potential potentially
prepare prepared present presented presents prevent previous previously primarily principal prior
probably problem problems proceed produce produced produces proper properly propose proposed prove
proved proves provide provided provides providing publish published pull purchase purchased
purpose purposes push put quick quickly ran range reach reached read reads real really reason
reasonable reasonably reasons receive received receives recent recently recognize reduce reduced
refer referred refers reflect reflected reflects regard regarding regardless regular related
relatively relevant relies rely remain remaining remains remove removed repeat replace replaced
represent represented represents request requested require required requires respect respective
respectively rest result resulted resulting results reveals right rise rose running runs said sat
save saw say saying says second seeing seek seem seemed seems seen selected selecting self send
sense sent separate serve served serves set sets seven shift shipped short show showed showing
shown shows shut side significant significantly similar simple simply single sit situation six
slightly small smaller sold solve somehow somewhat soon sort sorts sought special specific
specified specify spend spent split spoke stand stands start started starting starts stated stay
stays stood stop stored strong strongly subject subsequent subsequently successful suffer
sufficient suggest suggested suggests suitable summarize summarized supported supporting supports
sure tables take taken takes taking tell ten tend tends thank thanks thing things think third
thorough thought thousand three threw time times today told took trained treat treated tried tries
trillion true try trying turn turns twice two typical typically unable underlying understand
unfortunately update updated upper usage use used useful uses usual usually utilize utilized v
varies variety various vary visit wait want wanted wants watch way ways wear week went whilst
whither whole wide widely win wish wo woke won worked works worse worst write writes writing
written wrong wrote x year years yes yield yielded yields young zero
"""

_RUSSIAN = """
а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до
его ее её ей если есть еще ещё же за здесь и из или им их к как какая какой ко когда которая
которого которое которой которые который которых кто ли либо лишь между меня мне можно может могут
мы на над надо наш не него нее неё нет ни них но ну о об однако он она они оно от очень по под при
про с со сам свой своих себя так также такие такой там те тем то того тоже той только том тот ту
ты у уже хотя чего чей чем что чтобы чье чья эта эти это этого этой этом этот эту я является
являются нужно должен должна должны будет будут после перед через затем поэтому например иначе
следует используется используются использовать сделать другие других другой каждый каждого любой
несколько один одна одно два две три первый второй новый новая новые все-таки раз нам ним ней
вместо кроме ваш ваша ваше ваши вашего вашей вашем ваших вашу наиболее большинстве большинство
имеет имеют возможно доступен доступна доступно доступны просто далее сначала помощью можете
содержит содержат существует существуют приведённом указанном указанный использования вида виде
очередь образом именно менее самый самая больше меньше всегда никогда обычно часто данный данная
данные
"""

_JAPANESE = """
場合 以下 以上 以外 以前 以後 以降 上記 下記 左記 前記 後述 前述 必要 可能 使用 利用 対象 関係 等
的 者 中 上 下 前 後 時 内 外 間 方 事 物 点 度 回 件 各 当 同 本 該 何 一 二 三 四 五 六 七 八 九
十 年 月 日 人 次 他 今 今回 今後 現在 全体 一部 一般 通常 基本 特定 具体 実際 実施 実行 設定 指定
表示 確認 参照 参考 注意 説明 記載 記述 追加 変更 削除 作成 選択 入力 出力 開始 終了 結果 問題
方法 内容 種類 部分 程度 状態 状況 目的 理由 意味 例 図 表 章 節 項 頁 第 号 条 約 及 又 若 但
自分 自体 相当 該当 有無 可否 不可 不要 不明 同様 同時 最後 最初 最大 最小 最新 最近 多数 複数
単数 様々 色々 全部 全国 全員 以内 未満 合計 平均 割合 増加 減少 予定 一方 一定 一覧 共通 個別
別途 別紙 別表 資料 検討 対応 適用 活用 整備 推進 提供 ページ タイプ ケース もの こと ため とき
ところ よう
"""

# Never part of a name unless a name stands on both sides ("Bank of America").
FUNCTION: frozenset[str] = frozenset((_FUNCTION + _RUSSIAN + _JAPANESE).split())
# Never part of a phrase in small letters; capitalised, some are parts of names ("New York").
STOP: frozenset[str] = FUNCTION | frozenset(_ENGLISH.split())

# Words that name a place in a book when a number or letter follows.
REFERENCE_WORDS: frozenset[str] = frozenset(
    """
    section sections sec chapter chapters ch appendix appendices table tables tab figure figures fig
    figs equation equations eq eqs note notes item items part parts page pages step steps exhibit
    exhibits schedule article articles annex box question level phase line column row version volume
    vol no number paragraph clause rule class type group day week stage example listing algorithm
    theorem lemma definition corollary proposition slide option
    раздел глава таблица рисунок рис табл приложение
    """.split()
)

# Unfit as a concept alone or as a whole title, however frequent.
GENERIC: frozenset[str] = frozenset(
    """
    abstract acknowledgement acknowledgements acknowledgment acknowledgments appendix background
    bibliography conclusion conclusions contents copyright discussion foreword glossary index
    introduction keywords legend license overview preface reference references summary title
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue wed thu fri sat sun inc ltd llc corp co pp ed eds doi url http https www pdf
    true false null none yes no n/a tbd todo click next previous mr mrs ms dr prof st
    company companies customer customers product products service services business management
    area areas author authors body book content control data document documents effect event
    feature features field fields file files function functions future idea information instance
    issue issues item items key label language level levels line lines method methods model models
    name names output paper parameter parameters people person position property result results
    role sample set size source sources space structure study system systems task tasks text title
    topic unit units user users variable variables
    введение заключение содержание оглавление литература аннотация
    目次 概要 はじめに おわりに 序論 結論 索引 付録 参考文献 謝辞 まとめ
    """.split()
)

TITLES: frozenset[str] = frozenset({"mr", "mrs", "ms", "dr", "prof", "professor", "sir", "sen"})

# Words that a noun phrase follows: what stands after one, up to a break, ends in a noun.
DETERMINERS: frozenset[str] = frozenset(
    """a an the this that these those each every any some no our its their your his her
    my""".split()
)
