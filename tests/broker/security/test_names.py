from __future__ import annotations

import pytest

from urteil.broker.security.tls.distinguished_names import rfc2253
from urteil.broker.security.tls.mapping_rules import MappingRules

# DER and what Java 17's X500Principal.getName() says of it
JAVA = {
    "3031310b300906035504061302444531123010060355040a130941636d652c20496e63310e300c0603550403130561"
    "6c696365": "CN=alice,O=Acme\\, Inc,C=DE",
    "3025310d300b0603550403130444756b653114301206092a864886f70d01090116056140622e63":
    "1.2.840.113549.1.9.1=#16056140622e63,CN=Duke",
    "3028310a3008060355040b130178311a301806035504030c11613d6223633b643c653e6622672b685c69":
    'CN=a\\=b\\#c\\;d\\<e\\>f\\"g\\+h\\\\i,OU=x',
    "305d310b3009060355040813027374310a3008060355040713016c310a300806035504091301733111300f060a0992"
    "268993f22c6401191601643111300f060a0992268993f22c6401011301753110300e06035504030c074dc3bc6c6c65"
    "72": "CN=Müller,UID=u,DC=d,STREET=s,L=l,ST=st",
    "30223114300806035504031301783008060355040b130179310a30080603550405130135":
    "2.5.4.5=#130135,CN=x+OU=y",
    "3021310e300c060355040b0c052368617368310f300d06035504031306206c65616420":
    "CN=\\ lead\\ ,OU=\\#hash",
}  # fmt: skip


@pytest.mark.parametrize("encoded", JAVA)
def test_distinguished_name_is_written_as_in_java(encoded: str) -> None:
    assert rfc2253(bytes.fromhex(encoded)) == JAVA[encoded]


@pytest.mark.parametrize("encoded", ["", "30", "3005310b", "040130", "3003310100"])
def test_malformed_name_is_rejected(encoded: str) -> None:
    with pytest.raises(ValueError, match=r"DER|name"):
        rfc2253(bytes.fromhex(encoded))


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=a,OU=b", "CN=a,OU=b"),
        ("", "CN=a", "CN=a"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,C=x", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/U", "CN=a,OU=b", "A@B"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "OU=x,CN=Duke", "duke"),
        ("RULE:^nobody$/x/, DEFAULT", "CN=a", "CN=a"),
        ("RULE:^CN=(.*)$/$9$1/", "CN=a", "$9a"),
        (r"RULE:^CN=(.*),O=a\/b$/$1\/x/", "CN=d,O=a/b", "d/x"),
    ],
)
def test_first_matching_rule_maps_the_name(rules: str, name: str, user: str) -> None:
    assert MappingRules(rules).user(name) == user


def test_name_without_a_matching_rule_is_rejected() -> None:
    with pytest.raises(ValueError, match="No rules apply to CN=b"):
        MappingRules("RULE:^CN=a$/a/").user("CN=b")


@pytest.mark.parametrize("rules", ["nonsense", "RULE:a/b", "RULE:^(/x/", "RULE:^a$/x/LU"])
def test_invalid_rule_is_reported(rules: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        MappingRules(rules)
