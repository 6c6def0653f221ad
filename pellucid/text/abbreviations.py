"""Abbreviations of many languages, by whether a sentence can end with them."""

import functools

_Words = dict[str, str]
"""Words, without their last full stop, by the code of a language; those under ``""`` hold in all
languages with Latin letters. A word in lower case may begin a sentence with a capital too."""

_BEFORE_WORDS: _Words = {
    "": "Mr Mrs Ms Dr Prof Dipl Ing bzgl",
    "af": "mnr mev mej dr prof ds adv bv d.w.s o.a m.a.w t.o.v ong nl Mnr Mev Mej Ds Adv",
    "ar": "د أ م ا أ.د ص ج ه م.م",
    "bg": (
        "г-н г-жа проф д-р доц инж ул бул гр с напр вкл т.нар ок св полк акад пл кв бл т.е Проф "
        "Доц Св Ул Инж Акад"
    ),
    "bn": "ডা ড মি মো প্রফ",
    "ca": "Sr Sra Srta Dra p.ex av ex St Sta Mn Excm",
    "cs": (
        "např tzv tj tzn Mgr Bc MUDr JUDr PhDr RNDr prof doc sv ul resp popř příp zvl p mjr kpt "
        "plk pplk čs čj mj Sv Ul Gen Plk Kpt"
    ),
    "cy": "e.e h.y",
    "da": (
        "f.eks hr fr bl.a dvs dr prof sct skt pga ifm iht mht ift vedr evt inkl ekskl tlf gl ang "
        "hhv hhvs jf ca fhv fx nuv afd Hr Fr Sct Skt"
    ),
    "de": (
        "Friedr Wilh Joh Seb Ferd Heinr Theod Abb Adr allg Anm Aufl bes bspw betr bzw ca dgl "
        "entspr etw evtl exkl Fam Fa Forts Frl Fr geb gegr gem gesch gest gez ggf ggfs ggü Gebr Hg "
        "Hl hl Hr Hrn Hrsg hrsg i.d.R inkl insb insbes Inh jew Jgg kath lfd mtl mind Mag nachf "
        "näml o.g offz orth phil preuß rd röm schweiz sog St staatl stellv städt Tab Tel techn "
        "teilw u.a u.U ungef urspr verh verw Verf vgl vglw wg zw zzgl z.B z.T z.Zt zus zgl griech "
        "lat engl frz dt österr ev evang abzgl abz bez Bd Bde Ew ehem Vors Wwe Präs Reg Sekr Stv "
        "Min.-Präs mult amtl ärztl bayer vsl zuz zzt"
    ),
    "el": "κ κα κος κ.κ δηλ π.χ βλ Δρ Αγ αγ καθ αρχ λεωφ οδ πρβλ λ.χ εκδ επιμ μτφρ στρ υπ αριθμ",
    "en": (
        "Wm Chas Geo Thos Jas Robt Mx Messrs Mmes Hon Rev Revd Fr Gen Col Lt Maj Capt Cpt Cmdr Cdr "
        "Sgt Cpl Pvt Gov Sen Rep Pres Supt Det Insp St Ste Mt approx viz cf vs e.g i.e incl excl "
        "esp resp Brig Adm Amb Atty Msgr Bp Abp Ald Asst Assoc Dep dept Sgt.Maj Ft"
    ),
    "es": (
        "Sr Sra Srta Sres D Dña Dra Profa Av Avda Lic Arq Gral Cnel Sto Sta p.ej ej aprox Excmo "
        "Excma Ilmo Fr Mons Pdte Dir Cía Urb Ntra"
    ),
    "et": "nt st s.t s.o dr prof hr mag lk v.a k.a sh sealh",
    "eu": "jn dk",
    "fa": "دکتر پروف ر.ک ر.ك نک",
    "fi": (
        "esim ns ks mm prof tri toht fil maist dipl ts lk klo puh nk vrt hra rva nti os evl tk prk"
    ),
    "fr": (
        "M MM Mme Mmes Mlle Mlles Me Mgr Pr St Ste Cie env éd p.ex cf av bd boul apr hon réf rédac "
        "coll préf Gal Col Cdt Lt Sgt R.P Av Bd"
    ),
    "gl": "Sr Sra Dra Av p.ex",
    "he": "פרופ גב ר",
    "hi": "डॉ श्री श्रीमती प्रो पं कु मो सं ले मि सु इं एड डा रु",
    "hr": (
        "npr tj tzv dr prof sv ul mr sc ing dipl gđa gđica g gđ odn tzn mag akad doc prim primj "
        "bož usp str.ing blaž eng lat njem tal Sv Ul Gđa"
    ),
    "hu": (
        "dr ifj id özv ún pl kb ill ld vö prof Szt szt br hrsz tk alez ezr szerk főisk okl uo sz "
        "vmint Ifj Özv Id"
    ),
    "hy": "Դր պրոֆ",
    "id": "PT Drs Ir H Hj Tn Ny Sdr Jl Bpk tgl pk yth a.n d.a d.h",
    "is": "t.d þ.e hr fr dr prof skv ca u.þ.b sbr m.a þ.á.m t.a.m s.s f.h Hr",
    "it": (
        "sig sigg sig.ra sig.na dott dott.ssa prof prof.ssa avv ing arch geom on ons mons rag av "
        "es ad.es p.es spett gent gent.mo egr ill ca sr cav comm gen cap magg P.zza c.so v.le fam "
        "rev d.ssa s.lle f.lli cfr Sig Sigg Sig.ra Sig.na Dott Dott.ssa Prof.ssa Avv Arch Geom On "
        "Mons Rag Cav Gen Cap Spett Gent Egr"
    ),
    "ka": "მაგ ე.წ ბ-ნი ქ-ნი პროფ",
    "kk": "проф акад т.б мыс",
    "lt": "dr prof pvz t.y g pl doc gen inž kun šv plg žr vad vyr mgr a.a p Gen Šv",
    "lv": "dr prof piem t.i t.s t.sk doc inž sal sv kgs ģen Sv",
    "mk": "г пр проф д-р г-дин г-ѓа ул св т.е т.н бул Св Ул Проф",
    "ms": "Tn Pn En Hj Sdr",
    "nl": (
        "mevr mw dhr mr drs dr ir ing prof bijv bv d.w.z o.a m.b.t t.a.v ds st jhr ca incl excl "
        "m.i i.p.v z.g m.n resp evt vgl t.o.v n.a.v t.b.v i.v.m z.s.m zgn jl kol lt vnl nl weled "
        "bc hr fam Mevr Mw Dhr Drs Ir Ds St Jhr"
    ),
    "no": (
        "f.eks hr fr bl.a dvs dr prof ca pga ang evt inkl ekskl tlf adm dir jf hhv kfr st fhv mht "
        "ift iht vedr jfr Hr Fr St"
    ),
    "pl": (
        "nast k np tzn tzw tj m.in ul al pl os prof dr hab inż mgr św ks bp abp kard płk mjr kpt "
        "ppłk sierż st tel woj ob zob wg red lic pt ww ds jw płn płd wsch zach łac niem franc ros "
        "o gosp adw arch wyd przyp jn pn ewent względn zwł ppor dypl bł tłum w Św Ks Ul Al Bp Abp "
        "Inż Mgr Gen Płk Kpt"
    ),
    "pt": (
        "Sr Sra Srs Sras Srta Dra Drs Profa Profª Av Eng Exmo Exma Exa Exas Ilmo Ilma Ex R Pe p.ex "
        "aprox Gen Cel Maj Cap Ten Sto Sta Mons Dir Pça Rod Trav Lda Fr Arq"
    ),
    "ro": (
        "dl dna dra dnii d-l d-na dr prof ing acad arh av str bd sf şos șos ex d.ex de.ex conf "
        "jud mun com col lt cpt apr aprox Dl Dna Str Bd Sf Av Gen Col"
    ),
    "ru": (
        "кн тов т.е т.к т.н г-н г-жа ул просп пер пл наб бул проф доц акад инж д-р св напр см ср "
        "др.-греч англ франц лат др-греч обл р-н пос дер стр-во зав зам подп кап лейт серж чл "
        "канд филос экон юр гл ок прим ред изд мкр корп т.наз т.о преп Проф Доц Акад Св Ул Инж"
    ),
    "sk": "napr tzv tj tzn Mgr Bc MUDr JUDr PhDr RNDr prof doc sv ul resp príp p Sv Ul Gen",
    "sl": "npr tj tzv dr prof sv ul mag dipl inž oz gdč g t.i t.j akad doc prim Sv Ul Mag",
    "sq": "z znj dr prof p.sh dmth d.m.th rr inxh av",
    "sr": (
        "г npr tj tzv dr prof sv ul mr gđa gđica g odn tzn нпр тј тзв др проф св ул мр гђа гђица "
        "одн тзн инж доц акад Sv Ul Св Ул Проф Др"
    ),
    "sv": (
        "t.ex bl.a dvs d.v.s s.k f.d ca hr fr dr prof st inkl exkl fr.o.m t.o.m m.fl.a tel p.g.a "
        "m.a.o eg f.n f.ö resp ev jfr uppl tekn t.f ang o.s.a Hr Fr St"
    ),
    "sw": "Bw Bi Dkt Mh",
    "ta": "திரு திருமதி",
    "th": (
        "ดร ศ รศ ผศ นพ พญ ทพ น.ส ด.ช ด.ญ จ อ ต ถ ซ พล.อ พล.ต.อ พล.ท พล.ต พ.อ ร.ต.อ พ.ต.อ บมจ หจก "
        "บจก โทร ม.ร.ว ม.ล รศ.ดร ผศ.ดร ศ.ดร ร.ต ร.อ"
    ),
    "tr": (
        "Doç Yrd Av Sn Bn örn Op Uzm Öğr Gör Arş Cad Sok Mah Bul Apt Alb Org Gen Yzb Müh Mim Üni "
        "bkz krş Blv Tğm Bşk"
    ),
    "uk": (
        "тов т.е т.зв п ім вул просп пров пл бул проф доц акад інж д-р св напр див обл р-н смт "
        "буд кв пос англ нім лат юр канд зав заст ред т.б наприкл о Проф Доц Акад Св Вул Інж"
    ),
    "vi": (
        "TP Tp TX Tx TT Q P TS Ts ThS Ths PGS GS BS Bs KS Ks LS NXB GS.TS PGS.TS TSKH NSND NSƯT"
    ),
}
"""Titles and the like, behind which a sentence goes on, whatever the case of the next word."""

_BEFORE_NUMBERS: _Words = {
    "": "nr fig figs p pp pag pg approx ca max tel v vv",
    "ar": "ص ج ت م ق رقم ه",
    "af": "bl art par hfst",
    "bg": "стр т бр чл ал ок г ет ап вх",
    "ca": "pàg núm art cap vol aprox màx mín",
    "cs": "č str s sv čl odst kap obr tab cca roč r min tř písm př Sb vyd obj příl vyhl ust",
    "da": "s kl stk bd pct kap art pkt tlf årg afsn maks jan feb apr aug sept okt nov dec",
    "de": (
        "Nr S Bd Bde Abs Art Kap Abb Tab Str Ziff Rn Rdnr Rz Anm Aufl Jg Tel Zi min Pkt lit Beil "
        "Fig Bl Lfd Kl Stk Ver Abt Ausg Kat Vers Jan Feb Febr Mär Apr Aug Sept Okt Nov Dez"
    ),
    "el": "σελ αρ τ άρθ άρθρ αριθ τηλ εικ πίν κεφ παρ περ εδ σ έτ",
    "en": (
        "no nos vol vols ch chap sec sect min est avg col eq eqs op ed tab ext fl para rm ver vs c "
        "b r jan feb mar apr jun jul aug sep sept oct nov dec ref refs encl "
        "encls apt bldg No Nos"
    ),
    "es": (
        "pág págs núm núms n art arts cap vol aprox máx mín t inc párr ed fol c ene feb abr jun "
        "jul ago sept oct nov dic apdo depto dpto No"
    ),
    "et": "lk lg kd u tab",
    "eu": "or zk art",
    "fa": "ص ج ش س",
    "fi": "s n nro klo ks os kpl taul mom ed min art",
    "fr": "n no art vol chap t éd env col ch tél al § janv févr avr juil sept oct nov déc num",
    "he": "עמ מס ס",
    "hi": "सं पृ रु क्र ई",
    "hr": "br str čl st god sl tab sv r min cca toč",
    "hu": "kb old sz u min ld fsz em pl köt évf cca vö bek",
    "id": "no hal hlm tgl pk vol ps ay th No",
    "is": "bls kl gr mgr u.þ.b",
    "it": (
        "pagg n nn art artt cap vol min sec t gen feb apr giu lug ago sett ott nov dic par lett "
        "all prot fasc"
    ),
    "lt": "psl t str kab val pav lent d sk",
    "lv": "lpp l plkst tab att",
    "mk": "бр стр чл ст т год",
    "nl": "nrs blz hfst afb min bd jrg bijl jan feb apr aug sept okt nov dec",
    "no": "s kl bd kap art pkt tlf årg avsn maks jan feb apr aug sept okt nov des",
    "pl": "s str ok godz art ust par pkt poz t rys tab r min vol lok ul rozdz cz ks l dn zał",
    "pt": (
        "pág págs n núm art arts cap vol aprox máx mín t inc séc km jan fev abr jun jul ago set "
        "out nov dez al par"
    ),
    "ro": "art alin vol cap min aprox lit sec ian feb apr aug sept oct dec ap bl sc et pct",
    "ru": "стр с т рис табл гл п пп ст ч тел ок прибл макс мин вып разд кв д корп оф абз род прил",
    "sk": "č str s čl ods kap obr tab cca r min písm obj príl vyhl ust",
    "sl": "št str čl odst pogl sl tab r min ok cca",
    "sq": "fq f neni",
    "sr": "br str čl st god бр стр чл ст год макс мин сл таб ок",
    "sv": "s kl kap st art tab bd sid jan febr aug sept okt nov dec enl prop mom",
    "th": (
        "พ.ศ ค.ศ จ.ศ ร.ศ ฮ.ศ โทร น มาตรา ม.ค ก.พ มี.ค เม.ย พ.ค มิ.ย ก.ค ส.ค ก.ย ต.ค พ.ย ธ.ค ม ป ข้อ"
    ),
    "tr": "No no s sf sy c m md bkz M.Ö M.S böl şek tab maks min",
    "uk": "нар дод стор с т рис табл гл п ст ч тел бл макс мін вип розд буд кв",
    "vi": "Q P tr t ĐT T Đ k",
}
"""Words behind which a number belongs to the same sentence."""

_LIST_ENDS: _Words = {
    "": "etc",
    "af": "ens",
    "bg": "др и.др т.н и.т.н",
    "bs": "itsl",
    "cs": "atd apod aj",
    "da": "osv m.m mv m.v m.fl o.lign o.l",
    "de": "usw usf",
    "el": "κ.λπ κλπ κ.τ.λ κτλ κ.ά κ.α κ.ο.κ κοκ",
    "es": "Ud Uds Vd Vds",
    "et": "jne jms jm jmt",
    "fi": "jne yms ym tms",
    "hr": "itd sl i.sl",
    "hu": "stb",
    "id": "dll dsb dst",
    "is": "o.s.frv o.fl o.þ.h",
    "it": "ecc",
    "lt": "kt pan t.t",
    "lv": "utt u.c utml",
    "mk": "итн др сл",
    "nl": "enz e.d e.a",
    "no": "osv m.m mv m.v m.fl o.l",
    "pl": "itd itp in",
    "ro": "ş.a ș.a",
    "ru": "т.д т.п др пр",
    "sk": "atď apod pod",
    "sl": "itd ipd idr",
    "sq": "etj",
    "sr": "itd itsl sl итд итсл сл",
    "sv": "o.s.v osv m.m m.fl o.d o.dyl",
    "tr": "vb vs",
    "uk": "т.д т.п ін т.ін",
    "vi": "v.v vv",
}
"""Ends of enumerations: a sentence mostly ends there before a word in upper case."""

_UNITS: _Words = {
    "": "km cm mm kg ml mg kwh Cie",
    "bg": "г лв млн млрд хил ч мин сек пр.н.е н.е в вв",
    "bs": "p.n.e h",
    "ca": "a.C d.C s",
    "cs": "r l stol n.l př.n.l tis mil mld hod min sek Kč n.p kap",
    "da": "kr mio mia årh e.Kr f.Kr min sek pct tkr",
    "de": (
        "Art EG Mio Mrd Tsd Jh Jhd Jhdt Jahrh Std Min Sek Chr n.Chr v.Chr Stck Stk Pers MwSt Ex "
        "Nachm vorm nachm p.a Exempl i.R a.D Seb Ferd"
    ),
    "el": "μ.Χ π.Χ π.μ μ.μ χλμ εκ αι",
    "en": (
        "May LA Al SEC a.m p.m A.M P.M Inc Ltd Corp Co Bros Jr Sr U.S U.K U.N E.U U.S.A D.C B.C "
        "A.D Ph.D M.D B.A M.A Esq min sec hr hrs lb lbs oz ft mil yd mph sq Ave Blvd Rd Ln Hwy "
        "L.A N.Y LLC St Ste Mt Ft Chas"
    ),
    "es": "a.C d.C a.m p.m EE.UU UU S.A S.L min seg h hs",
    "et": "a saj eKr pKr m.a.j e.m.a milj mln mld min sek tk eur",
    "eu": "K.a K.o m.e",
    "fi": "eKr jKr milj mrd min sek v kpl vs tuh s.l",
    "fr": "J.-C J.C av.J.-C S.A min sec h s ap pers St Ste",
    "hr": "god g st n.e pr.Kr po.Kr min sek tis mil mlrd kn",
    "hu": "e.u d.u i.e i.sz Kr.e Kr.u mp évf Ft Kft Rt Zrt Bt",
    "is": "f.Kr e.Kr kr millj m.kr",
    "it": "a.C d.C C S.p.A S.r.l min sec h mln mld",
    "lt": "m mėn d val min sek a mln mlrd tūkst Lt proc e",
    "lv": "g gs milj mljrd min sek tūkst p.m.ē m.ē v",
    "mk": "г год н.е пр.н.е мил",
    "nl": "n.Chr v.Chr mln mld min sec p.j B.V N.V",
    "no": "kr mill mrd årh e.Kr f.Kr min sek pst moh",
    "pl": "r rr w ww n.e p.n.e tys mln mld zł gr godz min sek m.n.p.m szt egz bm br os prac",
    "pt": "a.C d.C a.m p.m S.A min seg h Ltda Cia",
    "ro": "î.Hr d.Hr e.n î.e.n î.Chr d.Chr mil mld min sec",
    "ru": (
        "г гг в вв н.э до.н.э тыс млн млрд трлн руб коп мин сек ч долл чел км см экз шт э куб кв "
        "и.о"
    ),
    "sk": "r stor n.l pred.n.l tis mil mld hod min sek Kr",
    "sl": "l n.št pr.Kr po.Kr min sek tis mio mrd stol",
    "sq": "e.s p.e.s mln",
    "sr": "g god n.e p.n.e din min г год н.е п.н.е дин мин хиљ мил",
    "sv": "med kr milj mkr mnkr mdr f.Kr e.Kr årh min sek st",
    "tr": "M.Ö M.S Ltd Şti A.Ş yy dk sn TL T.C",
    "uk": "р рр ст н.е до.н.е тис млн млрд трлн грн коп хв сек год крб дол чол км",
    "vi": "v.v CN",
}
"""Units and the like that can end a sentence, which mostly goes on behind them: it ends only before
a word that begins sentences."""

_STARTS: _Words = {
    "bg": "той тя то те аз ние вие това този тази но и а в на когато след ако",
    "cs": "on ona ono oni já my vy to ten ta ale a v na když po potom pak",
    "da": "han hun den det de jeg vi der men og i på da så efter hvis",
    "de": (
        "du mein meine dein deine kein keine jeder jede jedes jemand niemand alles nichts mir mich "
        "dir dich uns ihnen hast hat haben habt bist sind war waren kann bitte danke "
        "außerdem danach dort heute zudem ferner jedoch trotz alle beide man zwei drei viele "
        "einige diesen diesem unser unsere sobald dazu dabei darüber dennoch allerdings aber als "
        "am an auch auf aus bei bis da daher damit dann das dass der deshalb die dies diese "
        "dieser dieses doch ein eine einen einer er es für hier ich ihr im in ist ja jetzt mit "
        "nach nein noch nun ob obwohl oder seit sein seine sie so sondern trotzdem um und unter "
        "vom von vor wann warum was weil wenn wer wie wir wo während zu zum zur zwar über"
    ),
    "el": "ο η το οι αυτός αυτή αυτό και αλλά στη στο στην όταν μετά",
    "en": (
        "the a an he she it they we you i this that these those there then but and or so if when "
        "while after before in on at by for from to with as his her its their our my your what "
        "who where why how is are was were has have do does did not no yes however now here also "
        "all some one let please thus hence since"
    ),
    "es": (
        "el la los las un una él ella ellos yo nosotros esto este esta pero y en de a por con "
        "cuando después luego si no se su más entonces"
    ),
    "fr": (
        "le la les un une il elle ils elles je nous vous on ce cet cette ces c'est mais et en "
        "dans de à par pour avec quand après puis si son sa ses leur l'on alors"
    ),
    "hr": "on ona ono oni ja mi vi to taj ta ali i a u na kad kada nakon zatim onda ako",
    "hu": "a az ő ők én mi ez ezt de és ha amikor azután aztán majd",
    "it": (
        "il lo la i gli le un una lui lei loro io noi questo questa ma e in di a per con quando "
        "dopo poi se non si suo allora"
    ),
    "nl": (
        "de het een hij zij ze ik wij we dit dat deze maar en in op van bij met toen daarna als "
        "er zijn"
    ),
    "no": "han hun den det de jeg vi der men og i på da så etter hvis",
    "pl": "on ona ono oni ja my wy to ten ta ale i a w na gdy kiedy po potem jeśli nie",
    "pt": (
        "o a os as um uma ele ela eles elas eu nós isto este esta mas e em de por com quando "
        "depois se não seu então no na"
    ),
    "ro": "el ea ei ele eu noi acest aceasta dar și în de la pe cu când după apoi dacă nu",
    "ru": (
        "он она оно они я мы вы это этот эта но и а в на с к по когда после потом затем если не "
        "из для при его её их"
    ),
    "sk": "on ona ono oni ja my vy to ten tá ale a v na keď po potom",
    "sr": (
        "on ona ono oni ja to ali i a u na kad kada nakon zatim он она оно они ја то али и а у на "
        "кад када након затим"
    ),
    "sv": "han hon den det de jag vi där men och i på när då efter sedan om",
    "tr": "o bu şu ben biz siz onlar ama ve bir sonra daha ancak fakat",
    "uk": "він вона воно вони я ми ви це цей ця але і й а в у на з до коли після потім якщо не",
}
"""Words that begin a sentence, in lower case: none of them follows a title or a unit as a name."""

_REAL_WORDS: _Words = {
    "ca": "art mar no",
    "cs": "tu nám gen",
    "da": "din med ned to var",
    "de": "ab Satz Teil Vers mich mag Bart OK BSE",
    "en": "me OK ok ill art may miss no con ID",
    "es": "art bien mar no nos",
    "fr": "art vol",
    "hr": "gen red",
    "it": "art fa ha mai me no po sa so te va via",
    "nl": "art me",
    "pl": "gen lek",
    "pt": "art",
    "ro": "gen",
    "ru": "нем полк ген",
    "sk": "tu nám gen",
    "sl": "gen",
    "sr": "gen",
    "sv": "art hon med min ord ut ung",
    "uk": "вид ген полк",
}
"""Words that sentencex takes for abbreviations, such as that of Maine. Of 164,471 English lines of
Tatoeba 2,800 end with ``me``."""

_RELATIVES = {"nb": "no", "nn": "no", "bs": "hr", "sh": "hr", "cnr": "sr", "lb": "de", "be": "ru"}
"""Languages that share the words of another."""


def _words(lists: _Words, language: str) -> frozenset[str]:
    codes = ("", language, _RELATIVES.get(language, ""))
    return frozenset(word for code in codes for word in lists.get(code, "").split())


@functools.cache
def before_words(language: str) -> frozenset[str]:
    """Titles and the like, which no sentence ends with."""
    return _words(_BEFORE_WORDS, language)


@functools.cache
def before_numbers(language: str) -> frozenset[str]:
    """Words that a number belongs to."""
    return _words(_BEFORE_NUMBERS, language)


@functools.cache
def list_ends(language: str) -> frozenset[str]:
    """Ends of enumerations, such as ``etc``."""
    return _words(_LIST_ENDS, language)


@functools.cache
def units(language: str) -> frozenset[str]:
    """Units and the like, which can end a sentence."""
    return _words(_UNITS, language)


@functools.cache
def starts(language: str) -> frozenset[str]:
    """Words that begin sentences, in lower case; of German, words that follow no ordinal."""
    return _words(_STARTS, language)


@functools.cache
def real_words(language: str) -> frozenset[str]:
    """Words that look like abbreviations and are none in lower case."""
    return _words(_REAL_WORDS, language)
